/// The layout in which a value is stored.
public struct StoredVersion: Hashable, Sendable, CustomStringConvertible {
  /// The layout of the envelope around the value.
  public let format: Int

  /// The layout of the value itself.
  public let schema: Int

  /// Creates a version.
  public init(format: Int, schema: Int) {
    self.format = format
    self.schema = schema
  }

  /// Both numbers, for a message.
  public var description: String { "format \(format), schema \(schema)" }

  /// Whether a program that knows `supported` can't read this version.
  package func isNewer(than supported: StoredVersion) -> Bool {
    format > supported.format || schema > supported.schema
  }
}
