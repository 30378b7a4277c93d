/// One-line descriptions of `Codable` errors.
enum CodingFailure {
  /// Returns the reason of an error, followed by the coding path at which it occurred, if there is one.
  ///
  /// Keys and reasons may contain text from the server, so ``ServerText`` sanitizes and truncates the whole line.
  static func reason(of error: any Error) -> String {
    ServerText.line(rawReason(of: error))
  }

  private static func rawReason(of error: any Error) -> String {
    switch error {
    case DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context),
      DecodingError.dataCorrupted(let context):
      located(context.debugDescription, at: context.codingPath)
    case DecodingError.keyNotFound(let key, let context):
      located("“\(key.stringValue)” is missing", at: context.codingPath)
    case EncodingError.invalidValue(_, let context):
      located(context.debugDescription, at: context.codingPath)
    default:
      String(describing: error)
    }
  }

  private static func located(_ reason: String, at path: [any CodingKey]) -> String {
    let reasonWithoutPeriod = reason.hasSuffix(".") ? String(reason.dropLast()) : reason
    guard !path.isEmpty else { return reasonWithoutPeriod }
    let location = path.map { $0.intValue.map(String.init) ?? $0.stringValue }.joined(separator: ".")
    return reasonWithoutPeriod + " at " + location
  }
}
