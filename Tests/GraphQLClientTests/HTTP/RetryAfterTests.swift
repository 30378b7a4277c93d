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
    "", " ", "-1", "+1", "1.5", "1e3", "0x10", "5s", "5 seconds", "5, 6", "soon", "٥", "五", "\u{0}", "NaN", "infinity",
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

  @Test func `A number of seconds does not depend on the date of the response`() {
    #expect(Self.delay("5", responseDate: "Sun, 06 Nov 1994 08:49:37 GMT") == .seconds(5))
  }

  @Test(arguments: [
    "Sunday, 09-Sep-01 01:46:50 GMT", "Sun Sep  9 01:46:50 2001", "2001-09-09T01:46:50Z",
    "Sun, 9 Sep 2001 01:46:50 GMT", "Sun, 09 Sep 2001 01:46:50", "Sun, 09 Sep 2001 01:46:50 UTC",
    "Sun, 09 Sep 2001 01:46:50 +0000", "sun, 09 sep 2001 01:46:50 gmt", "Sun, 09 Sep 2001 01:46:50 GMT ",
    " Sun, 09 Sep 2001 01:46:50 GMT", "09 Sep 2001 01:46:50 GMT", "Sun, 09 Spt 2001 01:46:50 GMT",
  ])
  func `A date in an obsolete or invalid format requests no wait`(value: String) {
    #expect(Self.delay(value) == nil)
  }

  @Test(arguments: [
    "Fri, 31 Feb 2002 01:46:50 GMT", "Thu, 29 Feb 2001 01:46:50 GMT", "Sun, 00 Sep 2001 01:46:50 GMT",
    "Sun, 09 Sep 2001 24:00:00 GMT", "Sun, 09 Sep 2001 01:60:00 GMT", "Sun, 09 Sep 2001 01:46:61 GMT",
    "Sun, ٠٩ Sep 2001 01:46:50 GMT", "Sun, 09 Sep ٢٠٠١ 01:46:50 GMT", "Sun, 09 Sep 2001 ٠١:46:50 GMT",
  ])
  func `A date that does not exist, or has digits that are not ASCII, requests no wait`(value: String) {
    #expect(Self.delay(value) == nil)
  }
}
