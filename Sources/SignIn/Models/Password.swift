/// A password that no description, dump or mirror reveals.
///
/// Only ``text`` contains the characters. A value, an error or a view model that contains a password can be printed,
/// dumped and reflected without a leak. The type is deliberately not `Codable`, so a type that contains a password
/// can't be stored or sent by accident.
///
/// A text field binds to ``text``.
public struct Password: Sendable, Equatable {
  /// The characters, for the check of the password and for the text field.
  public var text: String

  /// Creates a password.
  public init(_ text: String = "") {
    self.text = text
  }

  /// Whether the password has no characters.
  public var isEmpty: Bool { text.isEmpty }
}

extension Password: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// The text `<redacted>`, for every password.
  public var description: String { "<redacted>" }

  /// The text `<redacted>`, for every password.
  public var debugDescription: String { description }

  /// A mirror without children.
  public var customMirror: Mirror { Mirror(self, children: [:], displayStyle: .struct) }
}
