internal import Foundation

/// Tells whether bytes are the same as others that are gone, within one process.
struct Fingerprint: Equatable {
  private let hash: Int

  init(_ bytes: Data) {
    var hasher = Hasher()
    bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
    hash = hasher.finalize()
  }
}
