/// A comment that isn't sent yet.
public struct Draft: Codable, Equatable, Sendable {
  /// What is written so far.
  public var text: String

  /// Creates a draft.
  public init(text: String = "") {
    self.text = text
  }
}
