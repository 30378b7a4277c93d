internal import Foundation

extension URL {
  /// Creates a URL from a text, or returns `nil` if the text isn't a valid URL.
  ///
  /// Unlike `URL(string:)`, it doesn't percent-encode invalid characters.
  init?(validating text: String) {
    self.init(string: text, encodingInvalidCharacters: false)
  }
}
