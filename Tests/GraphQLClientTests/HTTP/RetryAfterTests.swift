import Foundation
import Testing

@testable import GraphQLClient

struct RetryAfterTests {
  /// Sunday, 9 September 2001, 01:46:40 GMT.
  private static let now = Date(timeIntervalSince1970: 1_000_000_000)

  private static func delay(_ value: String, responseDate: String? = nil) -> Duration? {
    var headers: HTTPHeaders = ["retry-after": value]
    headers["date"] = responseDate
    return RetryAfter.delay(in: headers, now: now)
  }

  @Test func `A response without a Retry-After field requests no wait`() {
    #expect(RetryAfter.delay(in: HTTPHeaders(), now: Self.now) == nil)
    #expect(RetryAfter.delay(in: ["Date": "Sun, 09 Sep 2001 01:46:40 GMT"], now: Self.now) == nil)
  }

  @Test(arguments: [
    ("0", 0), ("1", 1), ("007", 7), ("120", 120), ("86399", 86_399), ("86400", 86_400), ("86401", 86_400),
    ("9223372036854775807", 86_400), ("9223372036854775808", 86_400), ("00000000000000000000000000005", 5),
    ("99999999999999999999999999999999", 86_400),
  ])
  func `A number requests a wait in seconds, up to a day`(value: String, seconds: Int) {
    #expect(Self.delay(value) == .seconds(seconds))
  }

  @Test(arguments: [
    "", " ", ",", "-1", "+1", "1.5", "1e3", "0x10", "5s", "5 seconds", "5 6", "soon", "soon, later", "٥", "五", "\u{0}",
    "NaN", "infinity",
  ])
  func `An invalid value requests no wait`(value: String) {
    #expect(Self.delay(value) == nil)
  }

  @Test(arguments: [
    ("Sun, 09 Sep 2001 01:46:40 GMT", 0), ("Sun, 09 Sep 2001 01:46:50 GMT", 10),
    ("Sun, 09 Sep 2001 02:46:40 GMT", 3600), ("Mon, 10 Sep 2001 01:46:40 GMT", 86_400),
    ("Mon, 10 Sep 2001 01:46:41 GMT", 86_400), ("Fri, 31 Dec 9999 23:59:59 GMT", 86_400),
    ("Sun, 09 Sep 2001 01:46:39 GMT", 0), ("Sun, 06 Nov 1994 08:49:37 GMT", 0),
  ])
  func `Without a Date field, the wait until the requested date is measured from now, and lies between zero and a day`(
    value: String, seconds: Int
  ) {
    #expect(Self.delay(value) == .seconds(seconds))
  }

  @Test(arguments: [
    ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:07 GMT", 30),
    ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:38 GMT", 0),
    ("Tue, 29 Feb 2000 00:00:00 GMT", "Mon, 28 Feb 2000 23:00:00 GMT", 3600),
    ("Sat, 01 Jan 2050 00:00:30 GMT", "Fri, 31 Dec 2049 23:59:30 GMT", 60),
    ("Sun, 09 Sep 2001 01:46:50 GMT", "yesterday", 10),
  ])
  func `The wait until the requested date is measured from the Date field, if the field is valid`(
    value: String, responseDate: String, seconds: Int
  ) {
    #expect(Self.delay(value, responseDate: responseDate) == .seconds(seconds))
  }

  @Test(arguments: [
    ("5, 6", 6), ("6,5", 6), ("5 , soon", 5), (", 5", 5), (" 5\t", 5), ("5, 99999999999999999999", 86_400),
    ("Sun, 09 Sep 2001 01:46:50 GMT, Sun, 09 Sep 2001 01:46:50 GMT", 10),
    ("Sun, 09 Sep 2001 01:46:50 GMT, 20", 20), ("5, Sunday, 09-Sep-01 01:46:50 GMT", 10),
    ("Sun Sep  9 01:46:50 2001, Sun, 09 Sep 2001 01:46:48 GMT", 10), (" Sun, 09 Sep 2001 01:46:50 GMT ", 10),
  ])
  func `Of several requested waits, the longest one that can be read counts`(value: String, seconds: Int) {
    #expect(Self.delay(value) == .seconds(seconds))
  }

  @Test func `A field with many members is read in linear time`() {
    #expect(Self.delay(String(repeating: "1,", count: 30_000) + "7") == .seconds(7))
    #expect(Self.delay(String(repeating: "Sun,", count: 16_000)) == nil)
  }

  @Test(arguments: [
    ("Sunday, 09-Sep-01 01:46:50 GMT", 10), ("Sun Sep  9 01:46:50 2001", 10), ("Mon Sep 10 01:46:40 2001", 86_400),
    ("Saturday, 09-Sep-51 01:46:40 GMT", 86_400), ("Sunday, 06-Nov-94 08:49:37 GMT", 0),
    ("Sunday, 09-Sep-52 01:46:40 GMT", 0), ("Sun Nov  6 08:49:37 1994", 0),
  ])
  func `A date in an obsolete format is read, and a year with two digits lies at most 50 years in the future`(
    value: String, seconds: Int
  ) {
    #expect(Self.delay(value) == .seconds(seconds))
  }

  @Test(arguments: ["Sunday, 06-Nov-94 08:49:07 GMT", "Sun Nov  6 08:49:07 1994"])
  func `The Date field may be in an obsolete format too`(responseDate: String) {
    #expect(Self.delay("Sun, 06 Nov 1994 08:49:37 GMT", responseDate: responseDate) == .seconds(30))
    #expect(
      Self.delay("Sun, 06 Nov 1994 08:49:37 GMT", responseDate: "\(responseDate), \(responseDate)") == .seconds(30))
  }

  @Test func `A number of seconds does not depend on the date of the response`() {
    #expect(Self.delay("5", responseDate: "Sun, 06 Nov 1994 08:49:37 GMT") == .seconds(5))
  }

  @Test(arguments: [
    "Sunday, 9-Sep-01 01:46:50 GMT", "Sunday, 09-Sep-2001 01:46:50 GMT", "Sun, 09-Sep-01 01:46:50 GMT",
    "Sunday, 09 Sep 01 01:46:50 GMT", "Sun Sep 9 01:46:50 2001", "Sun Sep 09 01:46:50 01",
    "Sun Sep  9 01:46:50 2001 GMT", "Sun, Sep  9 01:46:50 2001", "2001-09-09T01:46:50Z", "Sun, 9 Sep 2001 01:46:50 GMT",
    "Sun, 09 Sep 2001 01:46:50", "Sun, 09 Sep 2001 01:46:50 UTC",
    "Sun, 09 Sep 2001 01:46:50 +0000", "sun, 09 sep 2001 01:46:50 gmt", "09 Sep 2001 01:46:50 GMT",
    "Sun, 09 Spt 2001 01:46:50 GMT",
  ])
  func `A date in another format requests no wait`(value: String) {
    #expect(Self.delay(value) == nil)
  }

  @Test(arguments: [
    "Sunday, 31-Feb-02 01:46:50 GMT", "Thu Feb 29 01:46:50 2001", "Sun, 09 Sep 0000 01:46:50 GMT",
    "Fri, 31 Feb 2002 01:46:50 GMT", "Thu, 29 Feb 2001 01:46:50 GMT", "Sun, 00 Sep 2001 01:46:50 GMT",
    "Sun, 09 Sep 2001 24:00:00 GMT", "Sun, 09 Sep 2001 01:60:00 GMT", "Sun, 09 Sep 2001 01:46:61 GMT",
    "Sun, ٠٩ Sep 2001 01:46:50 GMT", "Sun, 09 Sep ٢٠٠١ 01:46:50 GMT", "Sun, 09 Sep 2001 ٠١:46:50 GMT",
  ])
  func `A date that does not exist, or has digits that are not ASCII, requests no wait`(value: String) {
    #expect(Self.delay(value) == nil)
  }
}
