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

  /// Creates the date and time that begins at a number of seconds since 1970, from the year 0 on.
  ///
  /// Foundation's formats aren't used, because they have the Julian calendar before 15 October 1582.
  ///
  /// - Complexity: O(1).
  init(secondsSince1970 seconds: Int) {
    let days = (seconds + Self.daysBefore1970 * 86_400) / 86_400
    let secondOfDay = seconds + Self.daysBefore1970 * 86_400 - days * 86_400
    (hour, minute, second) = (secondOfDay / 3_600, secondOfDay / 60 % 60, secondOfDay % 60)
    // The inverse of `date`: 400 years have 146,097 days, 100 have 36,524 and 4 have 1,461, but for the last ones.
    let (cycle, dayOfCycle) = days.quotientAndRemainder(dividingBy: 146_097)
    let yearOfCycle = (dayOfCycle - dayOfCycle / 1_460 + dayOfCycle / 36_524 - dayOfCycle / 146_096) / 365
    let dayOfYear = dayOfCycle - (yearOfCycle * 365 + yearOfCycle / 4 - yearOfCycle / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
    month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    year = cycle * 400 + yearOfCycle + (month > 2 ? 0 : 1)
  }

  init(year: Int, month: Int, day: Int, hour: Int, minute: Int, second: Int) {
    (self.year, self.month, self.day) = (year, month, day)
    (self.hour, self.minute, self.second) = (hour, minute, second)
  }

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
