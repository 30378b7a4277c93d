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
  /// A server and the proxy in front of it may both send the field. Of several waits, the longest one counts, because
  /// it respects all of them.
  ///
  /// - Returns: The wait, from zero to ``maximum``; `nil` if the field is missing, or has no member that is a number of
  ///   seconds or a date.
  /// - Complexity: O(*n*), where *n* is the length of the field.
  static func delay(in headers: HTTPHeaders, now: Date) -> Duration? {
    guard let value = headers["Retry-After"] else { return nil }
    let start =
      headers["Date"].flatMap { members(of: $0).lazy.compactMap { HTTPDate.parse($0, now: now) }.first } ?? now
    return members(of: value).compactMap { delay($0, from: start, now: now) }.max()
  }

  private static func delay(_ member: Substring, from start: Date, now: Date) -> Duration? {
    if !member.isEmpty, member.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) {
      // A number that overflows `Int64` also exceeds the maximum.
      return min(Int64(member).map(Duration.seconds) ?? maximum, maximum)
    }
    guard let end = HTTPDate.parse(member, now: now) else { return nil }
    return min(max(.seconds(end.timeIntervalSince(start)), .zero), maximum)
  }

  /// Returns the members of a repeated field, which commas and white space separate.
  ///
  /// A comma after the name of a weekday is part of a date.
  private static func members(of value: String) -> [Substring] {
    let utf8 = value.utf8
    func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
    var members: [Substring] = []
    var start = value.startIndex
    /// Returns the text from `start` to `end` without the white space around it.
    func member(endingAt end: String.Index) -> Substring {
      var bytes = utf8[start..<end].drop(while: isSpace)
      while let last = bytes.last, isSpace(last) { bytes.removeLast() }
      return Substring(bytes)
    }
    for index in utf8.indices where utf8[index] == UInt8(ascii: ",") {
      let member = member(endingAt: index)
      if HTTPDate.isWeekday(member) { continue }
      members.append(member)
      start = utf8.index(after: index)
    }
    members.append(member(endingAt: value.endIndex))
    return members
  }
}

/// A parser for dates in HTTP fields (RFC 9110, section 5.6.7).
enum HTTPDate {
  /// The lengths of the shortest and of the longest date, in bytes.
  private static let lengths = 24...33

  /// Parses a date in one of the three formats that a recipient must accept.
  ///
  /// - `Sun, 06 Nov 1994 08:49:37 GMT`, the format that senders must use,
  /// - `Sunday, 06-Nov-94 08:49:37 GMT`, the obsolete format of RFC 850,
  /// - `Sun Nov  6 08:49:37 1994`, the obsolete format of the C function `asctime`.
  ///
  /// The name of the weekday doesn't have to be that of the date. A year with two digits that appears to be more than
  /// 50 years in the future is the most recent past year with the same last two digits.
  ///
  /// - Parameters:
  ///   - text: The text, without white space around it.
  ///   - now: The current time, for a year with two digits.
  /// - Returns: The date; `nil` if the text has another format or the date doesn't exist.
  static func parse(_ text: Substring, now: Date) -> Date? {
    guard lengths.contains(text.utf8.count) else { return nil }
    return (parseStandard(text) ?? parseRFC850(text, now: now) ?? parseAsctime(text))?.date
  }

  /// Whether a text is the name of a weekday, in the form that precedes the comma of a date.
  static func isWeekday(_ text: Substring) -> Bool {
    guard text.utf8.count <= 9 else { return false }
    let text = String(text)
    return weekdays.contains(text) || fullWeekdays.contains(text)
  }

  private static func parseStandard(_ text: Substring) -> CalendarDate? {
    var reader = ASCIIReader(text)
    guard reader.index(in: weekdays) != nil, reader.skip(", "), let day = reader.number(2), reader.skip(" "),
      let month = reader.index(in: months), reader.skip(" "), let year = reader.number(4), reader.skip(" "),
      let time = time(&reader), reader.skip(" GMT"), reader.isAtEnd
    else { return nil }
    return CalendarDate(
      year: year, month: month + 1, day: day, hour: time.hour, minute: time.minute, second: time.second)
  }

  private static func parseRFC850(_ text: Substring, now: Date) -> CalendarDate? {
    var reader = ASCIIReader(text)
    guard reader.index(in: fullWeekdays) != nil, reader.skip(", "), let day = reader.number(2), reader.skip("-"),
      let month = reader.index(in: months), reader.skip("-"), let lastDigits = reader.number(2), reader.skip(" "),
      let time = time(&reader), reader.skip(" GMT"), reader.isAtEnd
    else { return nil }
    // Starts in the present century; the average length of a year suffices, because dates near the limit don't occur.
    let currentYear = 1970 + Int((now.timeIntervalSince1970 / 31_556_952).rounded(.down))
    var year = currentYear - currentYear % 100 + lastDigits
    if year > currentYear + 50 { year -= 100 }
    if year <= currentYear - 50 { year += 100 }
    return CalendarDate(
      year: year, month: month + 1, day: day, hour: time.hour, minute: time.minute, second: time.second)
  }

  private static func parseAsctime(_ text: Substring) -> CalendarDate? {
    var reader = ASCIIReader(text)
    guard reader.index(in: weekdays) != nil, reader.skip(" "), let month = reader.index(in: months), reader.skip(" "),
      let day = reader.skip(" ") ? reader.number(1) : reader.number(2), reader.skip(" "), let time = time(&reader),
      reader.skip(" "), let year = reader.number(4), reader.isAtEnd
    else { return nil }
    return CalendarDate(
      year: year, month: month + 1, day: day, hour: time.hour, minute: time.minute, second: time.second)
  }

  private static func time(_ reader: inout ASCIIReader) -> (hour: Int, minute: Int, second: Int)? {
    guard let hour = reader.number(2), reader.skip(":"), let minute = reader.number(2), reader.skip(":"),
      let second = reader.number(2)
    else { return nil }
    return (hour, minute, second)
  }

  private static let weekdays = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
  private static let fullWeekdays = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
  private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
}
