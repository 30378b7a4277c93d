internal import Foundation

/// A parser for the `Retry-After` field (RFC 9110, section 10.2.3).
enum RetryAfter {
  /// The maximum wait that ``delay(in:now:)`` returns.
  ///
  /// A longer requested wait is reduced to this maximum, so that a server can't make a client wait indefinitely.
  static let maximum = Duration.seconds(24 * 60 * 60)

  /// Returns the wait that a response requests.
  ///
  /// If the field is a date, the wait is measured from the response's own `Date`, so that an incorrect clock on either
  /// side has no effect. If the response has no valid `Date`, the wait is measured from `now`.
  ///
  /// - Returns: The wait, from zero to ``maximum``; `nil` if the field is missing, or is neither a number of seconds
  ///   nor a date.
  static func delay(in headers: HTTPHeaders, now: Date) -> Duration? {
    guard let value = headers["Retry-After"] else { return nil }
    if !value.isEmpty, value.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) {
      // A number that overflows `Int64` also exceeds the maximum.
      return min(Int64(value).map(Duration.seconds) ?? maximum, maximum)
    }
    guard let end = parseDate(value) else { return nil }
    let start = headers["Date"].flatMap(parseDate(_:)) ?? now
    return min(max(.seconds(end.timeIntervalSince(start)), .zero), maximum)
  }

  /// Parses an HTTP date in the format that RFC 9110 requires of senders, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
  private static func parseDate(_ text: String) -> Date? {
    guard text.utf8.count == 29, text.utf8.allSatisfy({ $0 < 0x80 }),
      let match = text.wholeMatch(
        of: /[A-Z][a-z]{2}, ([0-9]{2}) ([A-Z][a-z]{2}) ([0-9]{4}) ([0-9]{2}):([0-9]{2}):([0-9]{2}) GMT/),
      let month = months.firstIndex(of: String(match.2))
    else { return nil }
    let parts = DateComponents(
      calendar: Calendar(identifier: .gregorian), timeZone: .gmt, year: Int(match.3), month: month + 1,
      day: Int(match.1), hour: Int(match.4), minute: Int(match.5), second: Int(match.6))
    return parts.isValidDate ? parts.date : nil
  }

  private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
}
