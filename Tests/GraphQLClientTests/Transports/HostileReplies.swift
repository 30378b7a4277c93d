import Foundation
import TestSupport

/// A reply that is invalid, unusual, or designed to harm the client.
struct HostileReply: Sendable {
  /// The expected outcome of a call.
  enum Outcome: Sendable {
    case value
    case emptyReply
    case replyTooLarge
    case undecodable
    case graphQL
    case notAnAPIResponse
    case statusCode(Int)
    /// The exchange fails or times out.
    case transportOrTimeout
    /// A value or any error, because the versions of libcurl and Foundation differ in strictness.
    case anything
  }

  let name: String
  let script: ScriptedServer.Script
  let outcome: Outcome

  /// The maximum reply size of the session that receives these replies, in bytes.
  static let maximumReplySize = 100_000

  /// The body of a valid reply.
  static let validBody = #"{"data":{"a":1}}"#

  static let all: [HostileReply] = {
    var builder = ReplyListBuilder()
    builder.addLengths()
    builder.addChunks()
    builder.addHeaders()
    builder.addHeads()
    builder.addStatuses()
    builder.addEncodings()
    builder.addBodies()
    builder.addFailures()
    builder.addRedirections()
    return builder.replies
  }()
}

private struct ReplyListBuilder {
  var replies: [HostileReply] = []

  private let validBody = HostileReply.validBody
  private let okLine = "HTTP/1.1 200 OK\r\n"
  /// The first lines of the head of a JSON response, without the empty line that ends the head.
  private let jsonHeadLines = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
  private let chunkedHead = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"

  private mutating func add(
    _ outcome: HostileReply.Outcome, _ name: String, _ text: String, then ending: ScriptedServer.Script.Ending = .close
  ) {
    add(outcome, name, bytes: Data(text.utf8), then: ending)
  }

  private mutating func add(
    _ outcome: HostileReply.Outcome, _ name: String, bytes: Data, then ending: ScriptedServer.Script.Ending = .close
  ) {
    replies.append(HostileReply(name: name, script: .init(bytes, ending: ending), outcome: outcome))
  }

  /// Adds a well-formed response with the given body.
  private mutating func add(
    _ outcome: HostileReply.Outcome, _ name: String, body: String, status: String = "200 OK",
    type: String = "application/json", headers: String = ""
  ) {
    add(outcome, name, response(body, status: status, type: type, headers: headers))
  }

  private func response(
    _ body: String, status: String = "200 OK", type: String = "application/json", headers: String = ""
  ) -> String {
    let fields = "Content-Type: \(type)\r\n\(headers)Content-Length: \(body.utf8.count)\r\n"
    return "HTTP/1.1 \(status)\r\n\(fields)\r\n\(body)"
  }

  // MARK: - Lengths

  mutating func addLengths() {
    // `CurlTransport` survives all of these lengths. On Linux, `URLSession` crashes on those from 9223372036854775296
    // to 9223372036854775807.
    let hugeLengths = [
      "9223372036854775807", "9223372036854775296", "9223372036854775295", "9223372036854775808",
      "18446744073709551616", "99999999999999999999999999",
    ]
    for length in hugeLengths {
      add(.replyTooLarge, "length \(length)", "\(jsonHeadLines)Content-Length: \(length)\r\n\r\n\(validBody)")
    }
    for length in ["-1", "abc", "", "1e3", "0x10", "+16", "16, 16", "16, 17", " 16"] {
      add(.anything, "length “\(length)”", "\(jsonHeadLines)Content-Length: \(length)\r\n\r\n\(validBody)")
    }
    add(.anything, "two lengths", "\(jsonHeadLines)Content-Length: 16\r\nContent-Length: 17\r\n\r\n\(validBody)")
    add(
      .transportOrTimeout, "a body shorter than its length", "\(jsonHeadLines)Content-Length: 100\r\n\r\n\(validBody)")
    add(.value, "a body longer than its length", "\(jsonHeadLines)Content-Length: 16\r\n\r\n\(validBody)\(validBody)")
    add(.value, "no length", "\(jsonHeadLines)\r\n\(validBody)")
  }

  // MARK: - Chunks

  mutating func addChunks() {
    for size in ["zz", "-1", "FFFFFFFFFFFFFFFF", "7FFFFFFFFFFFFFFF", "FFFFFFFFFFFFFFFFFFFFFFFF", ""] {
      add(.transportOrTimeout, "a chunk of size “\(size)”", "\(chunkedHead)\(size)\r\n\(validBody)\r\n0\r\n\r\n")
    }
    add(.replyTooLarge, "chunks without end", chunkedHead, then: .flood(Data("5\r\n     \r\n".utf8)))
    let chunk = "10\r\n\(validBody)\r\n"
    add(.value, "trailers", "\(chunkedHead)\(chunk)0\r\nX-T: 1\r\nContent-Length: 5\r\n\r\n")
    add(.anything, "a trailer without a name", "\(chunkedHead)\(chunk)0\r\n: bad\r\n\r\n")
    add(
      .transportOrTimeout, "trailers without end", "\(chunkedHead)\(chunk)0\r\n", then: .flood(Data("X-T: 1\r\n".utf8)))
    add(.transportOrTimeout, "truncated chunks", "\(chunkedHead)10\r\n{\"data\"")
    let lengthHeader = "Content-Length: 9223372036854775807\r\n"
    add(
      .anything, "a length beside chunks",
      "\(jsonHeadLines)\(lengthHeader)Transfer-Encoding: chunked\r\n\r\n\(chunk)0\r\n\r\n")
  }

  // MARK: - Heads

  mutating func addHeaders() {
    let headers = [
      ": a", "a", "a b: c", "X:\u{0}y", "X: a\rb", "X: a\nY: b", " folded", "\t", "X: \u{1B}[2J", "X-é: 1", "=?: 1",
      "Set-Cookie: =;;;; expires=x; max-age=99999999999999999999", "Transfer-Encoding: bogus",
      "Connection: upgrade\r\nUpgrade: h2c", "Alt-Svc: h3=\":1\"", "HTTP/1.1 200 OK", "Content-Range: bytes 0-1/2",
    ]
    for header in headers {
      add(.anything, "the header “\(header)”", "\(jsonHeadLines)\(header)\r\nContent-Length: 16\r\n\r\n\(validBody)")
    }
    let (name, value) = (String(repeating: "X", count: 70_000), String(repeating: "y", count: 70_000))
    add(.transportOrTimeout, "a header name of 70,000 bytes", "\(jsonHeadLines)\(name): 1\r\n\r\n\(validBody)")
    add(.transportOrTimeout, "a header value of 70,000 bytes", "\(jsonHeadLines)X: \(value)\r\n\r\n\(validBody)")
    let manyHeaders = (0..<20_000).map { "x\($0): 1\r\n" }.joined()
    add(.transportOrTimeout, "20,000 headers", "\(jsonHeadLines)\(manyHeaders)\r\n\(validBody)")
    add(.transportOrTimeout, "headers without end", okLine, then: .flood(Data("a: b\r\n".utf8)))
    add(.transportOrTimeout, "a line without end", "\(okLine)X: ", then: .flood(Data("y".utf8)))
    let types = String(repeating: "Content-Type: application/json\r\n", count: 200)
    add(.value, "200 content types", "\(okLine)\(types)\r\n\(validBody)")
    add(.transportOrTimeout, "1,000 content types", "\(okLine)\(types)\(types)\(types)\(types)\(types)\r\n\(validBody)")
    add(.notAnAPIResponse, "a content type with a control character", body: validBody, type: "application/\u{1B}[2J")
    let notUTF8 = Data("X: ".utf8) + Data([0xFF, 0xFE]) + Data("\r\n\r\n".utf8)
    add(.value, "a header value in invalid UTF-8", bytes: Data(jsonHeadLines.utf8) + notUTF8 + Data(validBody.utf8))
  }

  mutating func addHeads() {
    add(.transportOrTimeout, "a truncated head", "\(okLine)X-A: 1\r\n")
    add(.transportOrTimeout, "a head that stops", "\(okLine)X-A: 1\r\n", then: .waitForClient)
    add(.transportOrTimeout, "no bytes", "")
    add(.transportOrTimeout, "no bytes and an open connection", "", then: .waitForClient)
    add(.transportOrTimeout, "a body without HTTP", validBody)
    add(.transportOrTimeout, "every byte value, twice", bytes: Data(0...255) + Data(0...255))
  }

  // MARK: - Statuses

  mutating func addStatuses() {
    let invalidLines = [
      "HTTP/1.1 099 x", "HTTP/1.1 1000 x", "HTTP/1.1 abc x", "HTTP/1.1 -20 x", "HTTP/3 200 OK", "ICY 200 OK", "garbage",
    ]
    for line in invalidLines {
      add(.transportOrTimeout, "the status line “\(line)”", "\(line)\r\nContent-Length: 16\r\n\r\n\(validBody)")
    }
    for line in ["HTTP/1.1 200", "HTTP/1.1  200 OK", "HTTP/1.0 200 OK", "HTTP/2 200 OK", "HTTP/1.2 200 OK"] {
      add(.anything, "the status line “\(line)”", "\(line)\r\nContent-Length: 16\r\n\r\n\(validBody)")
    }
    for status in [100, 102, 103, 199] {
      let interimHeads = String(repeating: "HTTP/1.1 \(status) x\r\nX: 1\r\n\r\n", count: 500)
      add(.value, "500 interim responses with status \(status)", "\(interimHeads)\(response(validBody))")
    }
    let interimHead = Data("HTTP/1.1 103 x\r\nX: 1\r\n\r\n".utf8)
    add(.transportOrTimeout, "103 without end", "", then: .flood(interimHead))
    add(.transportOrTimeout, "100 and no final response", "HTTP/1.1 100 Continue\r\n\r\n")
    add(.anything, "101", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nyes")
    add(.emptyReply, "204 with a body", body: validBody, status: "204 No Content")
    add(.anything, "205 with a body", body: validBody, status: "205 Reset Content")
    add(.notAnAPIResponse, "304 with a body", body: validBody, status: "304 Not Modified")
    add(.statusCode(600), "600", body: validBody, status: "600 x")
    add(.notAnAPIResponse, "999 with HTML", body: "<html>", status: "999 x", type: "text/html")
  }

  // MARK: - Encodings

  mutating func addEncodings() {
    add(.transportOrTimeout, "an unknown encoding", body: validBody, headers: "Content-Encoding: bogus\r\n")
    add(.transportOrTimeout, "invalid gzip", body: validBody, headers: "Content-Encoding: gzip\r\n")
    add(.transportOrTimeout, "invalid deflate", body: "0123456789", headers: "Content-Encoding: deflate\r\n")
    let encodings = Array(repeating: "gzip", count: 100).joined(separator: ", ")
    add(.transportOrTimeout, "gzip a hundred times", body: validBody, headers: "Content-Encoding: \(encodings)\r\n")
    for (name, encoding, base64) in Self.bombs {
      let bytes = Data(base64Encoded: base64) ?? Data()
      let head = "\(jsonHeadLines)Content-Encoding: \(encoding)\r\nContent-Length: \(bytes.count)\r\n\r\n"
      add(.replyTooLarge, name, bytes: Data(head.utf8) + bytes)
    }
  }

  /// Compressed spaces in Base64: `head -c 100000000 /dev/zero | tr '\0' ' ' | gzip -9n | gzip -9n | base64`.
  ///
  /// The spaces of the second bomb are compressed once more.
  private static let bombs = [
    (
      "100 MB in a few hundred bytes", "gzip, gzip",
      "H4sIAAAAAAACA+3dIU8CYRzH8Tvu3JyBg8AMBK/6DihsMDeCiYCZEYxEM+cYm87sSzD4AngBNt4B2LCb2CThzt29BsuzfT7p"
        + "n7/5t+e5ejmPKo3k++OxOor89ff68v0iAgAAAAAAAAACV3wuk7g68nI7Gt8BAAAAAAAAAKGbZc20HgWcpt2hHAAAAAAAAAAQ"
        + "vFW/16pfCDgs5qkcAAAAAAAAABC8znE/qLcAm3LdnugBAAAAAAAAAMHbLZO42gLk5XY0lgMAAAAAAAAAgjfLmmm1BShO0+5Q"
        + "DgAAAAAAAAAI3qrfa9WfBBwW81QOAAAAAAAAAAhe57gf1FuATbluT/QAAAAAAAAAgODtlklcbQHycjsaywEAAAAAAAAAwZtl"
        + "zbTaAhSnaXcoBwAAAAAAAAAE763fy6stQOtQPtw0IgAAAAAAAPh3WXx7//wUff2c/QHwp7L4MHsBAA=="
    ),
    (
      "100 MB in even fewer bytes", "gzip, gzip, gzip",
      "H4sIAAAAAAACA5Pv5mAAASbmt3cV/ZkSZY5/tH53Z05j8wEelvW/+DRyDMybOhtmCva4GD+XmH3ujbfBD6YKRrN7jDc2zL6h"
        + "8vDc3b1spzfX2r2cv//n9uc7qyz7tXqf/H680arrz9fvvz79VWJigACm8Bq9yTusPhVZS91nhIotnJ16dosc65xldxfKQIUE"
        + "9oTuv74qnsNC59lKhNi5QvsV2xlmF92d9wKm9+Bt3ck7bjE9eVpmMo0ZKtZkfnpW5lZWDb/L7wL4oGIc91bdz746n0VG7HMI"
        + "XCzu+Q75K9ENvjvz/L9AxRoevJ3mGZPLCHLgabglIAfeYhJZnlmuwQ4VY3m/9v7p1boOrwPs7pgoQcR+lEfWVP//I1L7d85f"
        + "xg/LN/0wqGZkAAAoK7+JWgEAAA=="
    ),
  ]

  // MARK: - Bodies

  mutating func addBodies() {
    add(.emptyReply, "an empty body", body: "")
    add(.notAnAPIResponse, "null", body: "null")
    add(.notAnAPIResponse, "a list", body: "[]")
    add(.notAnAPIResponse, "an object of another API", body: #"{"ok":true}"#)
    add(.notAnAPIResponse, "a login page", body: "<html>", type: "text/html")
    add(.notAnAPIResponse, "a login page that says it is JSON", body: "<html>")
    add(.emptyReply, "no data", body: #"{"data":null}"#)
    add(.undecodable, "data of another shape", body: #"{"data":{"a":"text"}}"#)
    add(.undecodable, "half of the data", body: #"{"data":{"a""#)
    add(.undecodable, "errors of another shape", body: #"{"errors":{}}"#)
    add(.undecodable, "errors without messages", body: #"{"errors":[{}]}"#)
    add(.undecodable, "90,000 levels of lists", body: #"{"data":"# + String(repeating: "[", count: 90_000))
    add(.undecodable, "18,000 levels of objects", body: String(repeating: #"{"a":"#, count: 18_000))
    // A session drops extensions that exceed its limits, and all errors after the first 100.
    let deepList = String(repeating: "[", count: 400) + String(repeating: "]", count: 400)
    add(.value, "a deeply nested extension", body: #"{"data":{"a":1},"extensions":{"x":\#(deepList)}}"#)
    let listElements = Array(repeating: "[]", count: 30_000).joined(separator: ",")
    add(.value, "an extension with too many values", body: #"{"data":{"a":1},"extensions":{"x":[\#(listElements)]}}"#)
    let errors = Array(repeating: #"{"message":"m"}"#, count: 6000).joined(separator: ",")
    add(.graphQL, "too many errors", body: #"{"errors":[\#(errors)]}"#)
    add(.value, "duplicate keys", body: #"{"data":{"a":1,"a":1},"data":{"a":1}}"#)
    add(.undecodable, "a number out of range", body: #"{"data":{"a":1e999}}"#)
    add(
      .undecodable, "a number of 90,000 digits", body: #"{"data":{"a":"# + String(repeating: "9", count: 90_000) + "}}")
    add(
      .undecodable, "a body in invalid UTF-8",
      bytes: Data("\(jsonHeadLines)\r\n{\"data\":\"".utf8) + Data([0xFF, 0x22, 0x7D]))
    let mark = Data([0xEF, 0xBB, 0xBF])
    add(.anything, "a byte order mark", bytes: Data("\(jsonHeadLines)\r\n".utf8) + mark + Data(validBody.utf8))
    add(.anything, "UTF-16", bytes: Data("\(jsonHeadLines)\r\n".utf8) + (validBody.data(using: .utf16) ?? Data()))
    add(.graphQL, "escape sequences", body: #"{"errors":[{"message":"\u001B[2J\u0007\u202E"}]}"#)
    // The marks of each pair are out of order, so comparing the text takes time quadratic in the number of pairs.
    let marks = String(repeating: "\u{301}\u{316}", count: 20_000)
    add(.value, "a key of 40,000 combining marks", body: #"{"data":{"a":1},"\#(marks)":1}"#)
    let escapedMarks = String(repeating: #"\u0301\u0316"#, count: 7_000)
    add(.value, "a key of 14,000 escaped marks", body: #"{"data":{"a":1},"\#(escapedMarks)":1}"#)
    let type = "application/json" + String(repeating: "\u{301}\u{316}", count: 10_000)
    add(.notAnAPIResponse, "a content type of 20,000 combining marks", body: validBody, type: type)
    let retryAfterLine = "Retry-After: S" + String(repeating: "\u{301}\u{316}", count: 10_000) + "\r\n"
    add(
      .statusCode(429), "a Retry-After value of 20,000 combining marks", body: "", status: "429 x",
      headers: retryAfterLine)
    let longMessage = String(repeating: "long ", count: 18_000)
    add(.graphQL, "a message of 90,000 bytes", body: #"{"errors":[{"message":"\#(longMessage)","path":["a"]}]}"#)
    add(.replyTooLarge, "a body without end", "\(jsonHeadLines)\r\n", then: .flood(Data("    ".utf8)))
    add(.transportOrTimeout, "a body that trickles", "\(jsonHeadLines)\r\n", then: .trickle)
    add(.transportOrTimeout, "a body that stops", "\(jsonHeadLines)Content-Length: 100\r\n\r\n{", then: .waitForClient)
    let secondReply = response(#"{"errors":[{"message":"m"}]}"#)
    add(.value, "a second reply after the first", "\(response(validBody))\(secondReply)", then: .keepAlive)
    // Without the `Connection` header, the next request could be sent over a connection on which no response arrives.
    let closingReply = response(validBody, headers: "Connection: close\r\n")
    add(.value, "a reply and silence", closingReply, then: .waitForClient)
  }

  // MARK: - Failures and redirections

  mutating func addFailures() {
    // Some statuses, such as 401, 407, 429 and 503, mean the same whether the API or a proxy sends them. A response
    // with another failure status, such as 403 or 404, counts as the API's only if it looks like one of a GraphQL
    // server.
    add(.notAnAPIResponse, "403 with HTML", body: "<html>", status: "403 x", type: "text/html")
    let spaces = Data("    ".utf8)
    add(.statusCode(503), "503 without end", "HTTP/1.1 503 x\r\n\r\n", then: .flood(spaces))
    add(.notAnAPIResponse, "404 without end", "HTTP/1.1 404 x\r\n\r\n", then: .flood(spaces))
    for challenge in ["Basic realm", "Digest", "realm=", "Basic realm=\"", "Negotiate", "\u{1B}[2J"] {
      add(
        .statusCode(401), "401 that asks for “\(challenge)”", body: "no", status: "401 x",
        headers: "WWW-Authenticate: \(challenge)\r\n")
    }
    add(.statusCode(407), "407", body: "no", status: "407 x", headers: "Proxy-Authenticate: Digest\r\n")
    for wait in ["99999999999999999999", "-1", "Sun, 99 Nov 9999 99:99:99 GMT", "\u{1B}[2J"] {
      add(
        .statusCode(429), "Retry-After “\(wait)”", body: "", status: "429 x", headers: "Retry-After: \(wait)\r\n"
      )
    }
  }

  mutating func addRedirections() {
    let locations = [
      "http://127.0.0.1:1/", "//%00/", "//[fe80::1%25eth0]/", "http://[::1", "javascript:1", "file:///etc/passwd",
      "http://user:password@127.0.0.1:1/", "//host:99999/x", "http://\u{1B}[2J/", "/graphql",
    ]
    for location in locations {
      add(
        .notAnAPIResponse, "a redirection to “\(location)”", body: "there", status: "307 x", type: "text/html",
        headers: "Location: \(location)\r\n")
    }
    add(.notAnAPIResponse, "302", body: "", status: "302 Found", headers: "Location: /login\r\n")
    add(.notAnAPIResponse, "308 to nowhere", body: "", status: "308 x", type: "text/html")
    add(
      .notAnAPIResponse, "a redirection with an endless body", "HTTP/1.1 302 Found\r\nLocation: /login\r\n\r\n",
      then: .flood(Data("    ".utf8)))
  }
}
