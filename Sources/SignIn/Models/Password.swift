/// A password, which no text, dump or mirror ever shows.
///
/// Its characters are in ``text`` and nowhere else: a value, an error or a view model that holds a password can be
/// printed, dumped and reflected without a leak. It is deliberately not `Codable`, so nothing that holds one can be
/// stored or sent by mistake.
///
/// A text field binds to ``text``.
public struct Password: Sendable, Equatable {
  /// The characters: for the one who checks them, and for the field they are typed in.
  public var text: String

  /// Creates a password.
  public init(_ text: String = "") {
    self.text = text
  }

  /// Whether nothing has been typed.
  public var isEmpty: Bool { text.isEmpty }
}

extension Password: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// The same for every password.
  public var description: String { "<redacted>" }

  /// The same for every password.
  public var debugDescription: String { description }

  /// A mirror without children.
  public var customMirror: Mirror { Mirror(self, children: [:], displayStyle: .struct) }
}
