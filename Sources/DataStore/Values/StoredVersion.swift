/// The format and the schema in which a value is stored.
public struct StoredVersion: Hashable, Sendable, CustomStringConvertible {
  /// The version of the envelope, in which a store keeps a value with its metadata.
  public let format: Int

  /// The version of the layout of the value itself.
  public let schema: Int

  /// Creates a version.
  public init(format: Int, schema: Int) {
    self.format = format
    self.schema = schema
  }

  /// Both numbers as text, for a message.
  public var description: String { "format \(format), schema \(schema)" }

  /// Returns whether a program that supports versions up to `supported` can't read this version.
  package func isNewer(than supported: StoredVersion) -> Bool {
    format > supported.format || schema > supported.schema
  }
}
