internal import Foundation
internal import Hummingbird
internal import Moments

/// What a browser shows of a timeline: all of it, so that one event makes good for all before it.
struct TimelineEvent: Equatable, Sendable {
  private struct Content: Encodable {
    let timeline: MomentsDetails
    /// The moments whose likes the server doesn't have.
    let waiting: [String]
  }

  /// The same for the same content, in every service and after each start.
  let id: String
  /// The event as it is sent.
  let bytes: ByteBuffer

  init(_ timeline: MomentsDetails, waiting: [String]) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    let content = try encoder.encode(Content(timeline: timeline, waiting: waiting.sorted()))
    id = String(Self.fingerprint(of: content), radix: 16)
    var bytes = ByteBuffer(string: "id: \(id)\ndata: ")
    bytes.writeBytes(content)
    bytes.writeString("\n\n")
    self.bytes = bytes
  }

  static func == (first: Self, second: Self) -> Bool { first.id == second.id }

  /// FNV-1a of 64 bits: draft-eastlake-fnv.
  private static func fingerprint(of bytes: Data) -> UInt64 {
    bytes.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01b3 }
  }
}
