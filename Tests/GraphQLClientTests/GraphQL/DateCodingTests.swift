import Foundation
import GraphQLClient
import Testing

struct DateCodingTests {
  private struct Payload: Codable, Equatable, Sendable {
    var at: Date
  }

  private static let url = URL(string: "https://api.example/graphql")!
  /// Sunday, 9 September 2001, 01:46:40 GMT.
  private static let date = Date(timeIntervalSince1970: 1_000_000_000)

  private static func post(
    _ date: Date = date, dates: DateCoding? = nil, reply json: String
  ) async throws -> (Date, requestBody: String) {
    let transport = ScriptedTransport { _ in .json(#"{"data":{"at":\#(json)}}"#) }
    let session =
      dates.map { APISession(url: url, dates: $0, transport: transport) } ?? APISession(url: url, transport: transport)
    let payload = try await session.post(
      document: "{ at }", operationName: "at", variables: Payload(at: date), as: Payload.self)
    return (payload.at, String(decoding: transport.requests[0].body, as: UTF8.self))
  }

  @Test(arguments: [
    ("2001-09-09T01:46:40Z", 0.0), ("2001-09-09T01:46:40.5Z", 0.5), ("2001-09-09T01:46:40.123456+00:00", 0.123456),
    ("2001-09-09T03:46:40+02:00", 0), ("2001-09-08T20:16:40-0530", 0), ("2001-09-09t01:46:40z", 0),
    ("2001-09-09 01:46:40Z", 0), ("2001-09-09T01:46:40.000000000000Z", 0), ("2001-09-09T01:46:40,25Z", 0.25),
  ])
  func `A date in a reply is text in the format of ISO 8601`(text: String, fraction: Double) async throws {
    let (date, _) = try await Self.post(reply: #""\#(text)""#)
    #expect(abs(date.timeIntervalSince(Self.date) - fraction) < 0.000_001)
  }

  @Test(arguments: [
    #""2001-09-09T01:46:40""#, #""2001-09-09""#, #""2001-02-29T01:46:40Z""#, #""2001-09-09T24:46:40Z""#,
    #""2001-09-09T01:46:40.Z""#, #""2001-09-09T01:46:40+1""#, #""2001-09-09T01:46:40Z ""#, "1000000000", "null",
    #""٢٠٠١-09-09T01:46:40Z""#, #""2001-13-09T01:46:40Z""#, #""2001-00-09T01:46:40Z""#, #""""#,
  ])
  func `Text in another format, or without an offset, is not a date`(json: String) async throws {
    let error = await #expect(throws: APISessionError.self) { try await Self.post(reply: json) }
    guard case .undecodable(let reason, _) = error else {
      Issue.record("expected an undecodable reply, got \(String(describing: error))")
      return
    }
    #expect(reason.hasSuffix(" at data.at"))
  }

  @Test(arguments: [
    (0.0, "2001-09-09T01:46:40Z"), (0.123, "2001-09-09T01:46:40.123Z"), (0.5, "2001-09-09T01:46:40.500Z"),
    (0.9996, "2001-09-09T01:46:41Z"), (0.001, "2001-09-09T01:46:40.001Z"), (0.999, "2001-09-09T01:46:40.999Z"),
    (-3_000_000_000, "1906-08-16T20:26:40Z"), (0.000_1, "2001-09-09T01:46:40Z"),
    (-13_219_379_200, "1582-10-14T00:00:00Z"), (-25_293_779_200, "1200-02-29T00:00:00Z"),
    (-63_135_596_800, "0001-01-01T00:00:00Z"), (252_402_214_400, "9999-12-31T00:00:00Z"),
    (-13_219_292_799.75, "1582-10-15T00:00:00.250Z"),
  ])
  func `A date in variables is written in UTC, with decimals if necessary`(offset: Double, text: String) async throws {
    let (_, body) = try await Self.post(Self.date + offset, reply: #""2001-09-09T01:46:40Z""#)
    #expect(body.contains(#"{"at":"\#(text)"}"#), "\(body)")
  }

  @Test(arguments: [TimeInterval.nan, .infinity, 1e300, 253_402_300_800, -62_135_596_801])
  func `A date that ISO 8601 can't represent is an error`(seconds: TimeInterval) async throws {
    let date = Date(timeIntervalSince1970: seconds)
    let error = await #expect(throws: APISessionError.self) { try await Self.post(date, reply: "0") }
    guard case .unencodableVariables(let reason) = error else {
      Issue.record("expected unencodable variables, got \(String(describing: error))")
      return
    }
    #expect(reason.hasSuffix(" at variables.at"))
  }

  @Test func `Every day of four centuries is read as the calendar has it`() async throws {
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = .gmt
    var date = Date(timeIntervalSince1970: -11_676_096_000)  // 1600-01-01
    let end = date + 400 * 366 * 86_400
    var texts: [String] = []
    var dates: [Date] = []
    // Steps of 17 days meet every day of the year in 400 years, and the end of February often.
    while date < end {
      let parts = calendar.dateComponents([.year, .month, .day], from: date)
      texts.append(String(format: "\"%04d-%02d-%02dT00:00:00Z\"", parts.year ?? 0, parts.month ?? 0, parts.day ?? 0))
      dates.append(date)
      date += 17 * 86_400
    }
    let body = #"{"data":[\#(texts.joined(separator: ","))]}"#
    let session = APISession(url: Self.url, transport: ScriptedTransport { _ in .json(body) })
    let read = try await session.post(
      document: "{ a }", operationName: "a", variables: [String: Int](), as: [Date].self)
    #expect(read == dates)
  }

  @Test func `The session's format applies to variables and to replies`() async throws {
    let (seconds, secondsBody) = try await Self.post(dates: .secondsSince1970, reply: "1000000000")
    #expect(seconds == Self.date)
    #expect(secondsBody.contains(#"{"at":1000000000}"#))
    let (milliseconds, millisecondsBody) = try await Self.post(dates: .millisecondsSince1970, reply: "1000000000000")
    #expect(milliseconds == Self.date)
    #expect(millisecondsBody.contains(#"{"at":1000000000000}"#))
    let ownFormat = DateCoding(encoding: .deferredToDate, decoding: .deferredToDate)
    #expect(try await Self.post(dates: ownFormat, reply: "21692800").0 == Self.date)
  }
}
