/// In which layout a value is stored.
public struct StoredVersion: Hashable, Sendable, CustomStringConvertible {
  /// The layout of what the store writes around the value.
  public let format: Int

  /// The layout of the value itself.
  public let schema: Int

  /// Creates a version.
  public init(format: Int, schema: Int) {
    self.format = format
    self.schema = schema
  }

  /// Names both numbers.
  public var description: String { "format \(format), schema \(schema)" }

  /// Whether a program that knows `supported` cannot know this.
  package func isNewer(than supported: StoredVersion) -> Bool {
    format > supported.format || schema > supported.schema
  }
}
