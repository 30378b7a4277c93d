internal import Foundation

/// The `Retry-After` field of RFC 9110, section 10.2.3.
enum RetryAfter {
  /// The longest wait that a server can ask for.
  ///
  /// A longer one counts as this, so that no server puts a client off for good.
  static let maximum = Duration.seconds(24 * 60 * 60)

  /// Returns the wait that a response asks for.
  ///
  /// A date is compared with the response's own `Date`, so that a wrong clock on either side does no harm, and with
  /// `now` where the response has none.
  ///
  /// - Returns: The wait, from zero to ``maximum``; `nil` without the field, or where it is neither a number of seconds
  ///   nor a date.
  static func delay(in headers: HTTPHeaders, now: Date) -> Duration? {
    guard let value = headers["Retry-After"] else { return nil }
    if !value.isEmpty, value.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) {
      // More digits than a number holds are more than the maximum.
      return min(Int64(value).map(Duration.seconds) ?? maximum, maximum)
    }
    guard let date = date(value) else { return nil }
    let start = headers["Date"].flatMap(date(_:)) ?? now
    return min(max(.seconds(date.timeIntervalSince(start)), .zero), maximum)
  }

  /// Reads an HTTP date in the form that RFC 9110 has senders use, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
  private static func date(_ text: String) -> Date? {
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
