/// A comment that hasn't been sent yet.
public struct Draft: Codable, Equatable, Sendable {
  /// The text written so far.
  public var text: String

  /// Creates a draft.
  public init(text: String = "") {
    self.text = text
  }
}
