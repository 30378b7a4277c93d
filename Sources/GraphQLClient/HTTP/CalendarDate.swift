internal import Foundation

/// A date and time of the Gregorian calendar in UTC, as text in HTTP and in JSON spells it.
///
/// The conversion to `Date` doesn't use a `Calendar`, because a server can send a reply with very many dates.
struct CalendarDate {
  var year: Int
  /// The month, from 1.
  var month: Int
  /// The day of the month, from 1.
  var day: Int
  var hour: Int
  var minute: Int
  var second: Int

  /// The date; `nil` if there is no such date or time.
  ///
  /// Leap seconds don't exist, because `Date` doesn't count them.
  ///
  /// - Complexity: O(1).
  var date: Date? {
    guard (1...9999).contains(year), (1...12).contains(month),
      (1...Self.dayCount(ofMonth: month, in: year)).contains(day),
      (0...23).contains(hour), (0...59).contains(minute), (0...59).contains(second)
    else { return nil }
    // Counts years from March, so that the leap day is the last day of a year.
    let shiftedYear = month > 2 ? year : year - 1
    let shiftedMonth = (month + 9) % 12
    let daysBeforeYear = shiftedYear * 365 + shiftedYear / 4 - shiftedYear / 100 + shiftedYear / 400
    // The lengths of the months from March follow a pattern of 153 days in five months.
    let daysBeforeMonth = (153 * shiftedMonth + 2) / 5
    let days = daysBeforeYear + daysBeforeMonth + day - 1 - Self.daysBefore1970
    return Date(timeIntervalSince1970: TimeInterval(days * 86_400 + hour * 3_600 + minute * 60 + second))
  }

  /// The number of days from 1 March of the year 0 to 1 January 1970.
  private static let daysBefore1970 = 719_468

  private static func dayCount(ofMonth month: Int, in year: Int) -> Int {
    switch month {
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }
}

/// A reader of text in ASCII, such as a date, from its beginning.
///
/// Each function returns `nil` or `false`, and reads nothing, if the text doesn't continue as required.
struct ASCIIReader {
  private var rest: Substring.UTF8View

  init(_ text: String) {
    rest = text[...].utf8
  }

  init(_ text: Substring) {
    rest = text.utf8
  }

  var isAtEnd: Bool { rest.isEmpty }

  /// Reads a number with exactly `digitCount` digits.
  mutating func number(_ digitCount: Int) -> Int? {
    let digits = rest.prefix(digitCount)
    guard digits.count == digitCount else { return nil }
    var value = 0
    for digit in digits {
      guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) else { return nil }
      value = value * 10 + Int(digit - UInt8(ascii: "0"))
    }
    rest = rest.dropFirst(digitCount)
    return value
  }

  /// Reads `text`, which is in ASCII.
  mutating func skip(_ text: StaticString) -> Bool {
    let length = text.utf8CodeUnitCount
    let isNext = text.withUTF8Buffer { rest.prefix(length).elementsEqual($0) }
    if isNext { rest = rest.dropFirst(length) }
    return isNext
  }

  /// Reads one of `texts`, and returns its index.
  mutating func index(in texts: [String]) -> Int? {
    guard let index = texts.firstIndex(where: { rest.starts(with: $0.utf8) }) else { return nil }
    rest = rest.dropFirst(texts[index].utf8.count)
    return index
  }

  /// Reads digits as a fraction of one; at least one digit.
  mutating func fraction() -> Double? {
    var (value, unit, count) = (0.0, 0.1, 0)
    while let digit = number(1) {
      value += Double(digit) * unit
      unit /= 10
      count += 1
    }
    return count > 0 ? value : nil
  }
}
