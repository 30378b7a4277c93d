internal import Foundation

/// A hash that recognizes equal bytes within one process, without keeping the bytes.
struct Fingerprint: Hashable {
  private let hash: Int

  init(_ bytes: Data) {
    var hasher = Hasher()
    bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
    hash = hasher.finalize()
  }
}
