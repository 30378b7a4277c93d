internal import Foundation

extension URL {
  /// The URL that a text is, or nil: what is no URL is not repaired into one.
  init?(validating text: String) {
    self.init(string: text, encodingInvalidCharacters: false)
  }
}
