internal import Foundation
package import Hummingbird
package import Moments

/// A server-sent event with a whole timeline, so that each event replaces all earlier ones.
///
/// A class, so that all open streams of the timeline share one copy of it.
package final class TimelineEvent: Equatable, Sendable {
  private struct Content: Encodable {
    let timeline: MomentsDetails
    let waiting: [String]
  }

  /// A fingerprint of the content; equal contents have the same id in every service and after each start.
  package let id: String
  /// The encoded event.
  package let bytes: ByteBuffer

  /// Encodes an event.
  ///
  /// - Parameters:
  ///   - timeline: The timeline.
  ///   - waiting: The ids of the moments that have a pending like.
  package init(_ timeline: MomentsDetails, waiting: [String]) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    let content = try encoder.encode(Content(timeline: timeline, waiting: waiting.sorted()))
    id = String(Self.fingerprint(of: content), radix: 16)
    var bytes = ByteBuffer(string: "id: \(id)\ndata: ")
    bytes.writeBytes(content)
    bytes.writeString("\n\n")
    self.bytes = bytes
  }

  package static func == (first: TimelineEvent, second: TimelineEvent) -> Bool { first.id == second.id }

  /// Returns the 64-bit FNV-1a hash of the bytes, as draft-eastlake-fnv defines it.
  private static func fingerprint(of bytes: Data) -> UInt64 {
    bytes.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01b3 }
  }
}
