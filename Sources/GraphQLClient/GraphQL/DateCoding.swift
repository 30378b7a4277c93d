public import Foundation

/// The format of the `Date` values in the variables and in the data of an ``APISession``.
///
/// GraphQL has no type for dates. Most servers have a scalar such as `DateTime`, whose values are text in the format of
/// ISO 8601; others send numbers.
public struct DateCoding: Sendable {
  let encoding: JSONEncoder.DateEncodingStrategy
  let decoding: JSONDecoder.DateDecodingStrategy

  /// Creates a format from the strategies of Foundation.
  ///
  /// - Parameters:
  ///   - encoding: The strategy that writes the dates in variables.
  ///   - decoding: The strategy that reads the dates in data. A custom one must take time linear in the length of the
  ///     text, because a server can send a very long one.
  public init(encoding: JSONEncoder.DateEncodingStrategy, decoding: JSONDecoder.DateDecodingStrategy) {
    self.encoding = encoding
    self.decoding = decoding
  }

  /// Text in the format of ISO 8601, such as `2026-11-29T12:00:00Z`, as RFC 3339, section 5.6, profiles it.
  ///
  /// Reads any number of decimals of a second, and any offset from UTC, such as `2026-11-29T13:00:00.25+01:00`. A text
  /// without an offset isn't a date, because its time zone is unknown. Writes UTC, with three decimals if the date
  /// isn't a whole second. A date outside the years 1 to 9999 can't be written.
  public static let iso8601 = DateCoding(
    encoding: .custom { date, encoder in
      var container = encoder.singleValueContainer()
      guard let text = ISO8601Date.text(of: date) else {
        throw EncodingError.invalidValue(
          date, .init(codingPath: encoder.codingPath, debugDescription: "The date is outside the years 1 to 9999"))
      }
      try container.encode(text)
    },
    decoding: .custom { decoder in
      let container = try decoder.singleValueContainer()
      guard let date = ISO8601Date.parse(try container.decode(String.self)) else {
        throw DecodingError.dataCorruptedError(
          in: container, debugDescription: "The text is not a date in the format of ISO 8601 with an offset from UTC")
      }
      return date
    })

  /// The number of seconds since 1970.
  public static let secondsSince1970 = DateCoding(encoding: .secondsSince1970, decoding: .secondsSince1970)

  /// The number of milliseconds since 1970.
  public static let millisecondsSince1970 = DateCoding(
    encoding: .millisecondsSince1970, decoding: .millisecondsSince1970)
}

/// The conversion between dates and text in the format of RFC 3339.
enum ISO8601Date {
  /// The maximum length of a date, in bytes, which leaves room for 35 decimals.
  private static let maximumLength = 61

  /// Returns the date of a text; `nil` if the text has another format or the date doesn't exist.
  static func parse(_ text: String) -> Date? {
    guard text.utf8.count <= maximumLength else { return nil }
    var reader = ASCIIReader(text)
    guard let year = reader.number(4), reader.skip("-"), let month = reader.number(2), reader.skip("-"),
      let day = reader.number(2), reader.skip("T") || reader.skip("t") || reader.skip(" "),
      let hour = reader.number(2), reader.skip(":"), let minute = reader.number(2), reader.skip(":"),
      let second = reader.number(2),
      let date = CalendarDate(year: year, month: month, day: day, hour: hour, minute: minute, second: second).date
    else { return nil }
    var fraction = 0.0
    if reader.skip(".") || reader.skip(",") {
      guard let decimals = reader.fraction() else { return nil }
      fraction = decimals
    }
    guard let offset = offset(&reader), reader.isAtEnd else { return nil }
    return date + fraction - TimeInterval(offset)
  }

  /// Reads `Z`, or an offset such as `+01:00`, and returns it in seconds.
  private static func offset(_ reader: inout ASCIIReader) -> Int? {
    if reader.skip("Z") || reader.skip("z") { return 0 }
    let sign = reader.skip("+") ? 1 : reader.skip("-") ? -1 : 0
    guard sign != 0, let hours = reader.number(2), hours < 24 else { return nil }
    _ = reader.skip(":")
    guard let minutes = reader.number(2), minutes < 60 else { return nil }
    return sign * (hours * 3_600 + minutes * 60)
  }

  /// Returns the text of a date, rounded to milliseconds; `nil` if the date is outside the years 1 to 9999.
  static func text(of date: Date) -> String? {
    let milliseconds = (date.timeIntervalSince1970 * 1_000).rounded()
    guard milliseconds >= -62_135_596_800_000, milliseconds < 253_402_300_800_000 else { return nil }
    let seconds = Int((milliseconds / 1_000).rounded(.down))
    let decimals = Int(milliseconds) - seconds * 1_000
    let date = CalendarDate(secondsSince1970: seconds)
    func digits(_ number: Int, _ count: Int) -> String {
      let digits = String(number)
      return String(repeating: "0", count: count - digits.count) + digits
    }
    let day = "\(digits(date.year, 4))-\(digits(date.month, 2))-\(digits(date.day, 2))"
    let time = "\(digits(date.hour, 2)):\(digits(date.minute, 2)):\(digits(date.second, 2))"
    return "\(day)T\(time)\(decimals == 0 ? "" : "." + digits(decimals, 3))Z"
  }
}
