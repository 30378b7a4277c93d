import Foundation
import Testing

@testable import DataStore

@Suite struct EnvelopeTests {
  private struct Profile: Codable, Equatable {
    var name: String
    var link: URL
    var since: Date
  }

  private let profile = Profile(
    name: "Jake\nLin", link: URL(string: "https://example.com/a")!, since: Date(timeIntervalSinceReferenceDate: 0.1))

  private let tag = StoreTag(text: "00112233445566778899aabbccddeeff")!

  private enum Content<Value> {
    case value(Value, savedAt: Date)
    case future(StoredVersion)
    case undecodable(reason: String)
    case corrupt(reason: String)
  }

  private func decode<Value: Codable & Sendable>(_ bytes: Data, as type: Value.Type) -> Content<Value> {
    switch Envelope.open(bytes, schema: 1) {
    case .future(let version): return .future(version)
    case .undecodable(let reason): return .undecodable(reason: reason)
    case .corrupt(let reason): return .corrupt(reason: reason)
    case .value(let header, let body):
      switch makeValueFormat(of: type).decode(header, body: body, parts: []) {
      case .value(let value, _): return .value(value, savedAt: header.savedAt)
      case .unusable(let reason): return .undecodable(reason: reason.description)
      }
    }
  }

  private func decode<Value: Codable & Sendable>(_ text: String, as type: Value.Type) -> Content<Value> {
    decode(Data(text.utf8), as: type)
  }

  @Test func `An envelope is a header line, then the value`() throws {
    let header = Envelope.Header(
      schema: 1, savedAt: Date(timeIntervalSinceReferenceDate: 816_932_841.5), tag: tag, partIDs: nil)
    let bytes = try Envelope.encode(header, body: JSONEncoder.withSortedKeys.encode(profile))
    // The envelope pads the time with spaces, to at least 20 characters.
    #expect(
      String(decoding: bytes, as: UTF8.self) == """
        {"checksum":"7cb4a289","format":3,"savedAt":816932841.5         ,"schema":1,"tag":"00112233445566778899aabbccddeeff"}
        {"link":"https://example.com/a","name":"Jake\\nLin","since":0.1}
        """)
  }

  @Test func `A value that is stored whole is encoded without escaped slashes`() throws {
    #expect(String(decoding: try encodedEnvelope("a/b"), as: UTF8.self).hasSuffix("}\n\"a/b\""))
  }

  @Test(arguments: [nil, [], ["0a1b", "2c3d"]])
  func `The scanner recognizes each header line that a store writes`(partIDs: [String]?) throws {
    for time in [0, -1.5, 816_932_841.549_993_8, 1e30, -1e-30] {
      let header = Envelope.Header(
        schema: 7, savedAt: Date(timeIntervalSinceReferenceDate: time), tag: tag, partIDs: partIDs)
      let bytes = try Envelope.encode(header, body: Data("{}".utf8))
      let line = bytes.prefix { $0 != UInt8(ascii: "\n") }
      #expect(HeaderScanner.header(in: line.dropFirst(#"{"checksum":"01234567""#.utf8.count)) == header)
    }
  }

  @Test func `A value and the time of its save are decoded exactly`() throws {
    var random = SystemRandomNumberGenerator()
    for _ in 0..<5_000 {
      let savedAt = Date(timeIntervalSinceReferenceDate: .random(in: -1e11...1e11, using: &random))
      var profile = profile
      profile.since = Date(timeIntervalSinceReferenceDate: .random(in: -1e11...1e11, using: &random))
      let bytes = try encodedEnvelope(profile, savedAt: savedAt)
      guard case .value(let value, savedAt) = decode(bytes, as: Profile.self) else {
        Issue.record("\(String(decoding: bytes, as: UTF8.self))")
        return
      }
      #expect(value == profile)
    }
  }

  @Test(arguments: [
    // The schema of a future format is unknown, so it is assumed to be the supported one, 1.
    (#"{"checksum":"b9478556","format":4}"#, StoredVersion(format: 4, schema: 1)),
    (#"{"checksum":"acc6e4d6","format":4,"schema":{}}"#, StoredVersion(format: 4, schema: 1)),
    ("{\"checksum\":\"963ce9f2\",\"format\":4,\"schema\":1}\n\u{0}\u{1}\u{2}", StoredVersion(format: 4, schema: 1)),
  ])
  func `A future format or schema is recognized even if the rest of the bytes can't be decoded`(
    text: String, version: StoredVersion
  ) {
    guard case .future(version) = decode(text, as: Profile.self) else {
      Issue.record("\(text)")
      return
    }
  }

  @Test func `A future schema in the current format is recognized`() throws {
    let bytes = try encodedEnvelope("unknown", schema: 7)
    guard case .future(StoredVersion(format: 3, schema: 7)) = decode(bytes, as: Profile.self) else {
      Issue.record("\(String(decoding: bytes, as: UTF8.self))")
      return
    }
  }

  @Test(arguments: [
    "", "\n", "corrupt", "{}", "{}\n{}", "null\nnull", "{\"format\":3,\"schema\":1,\"savedAt\":0}\n1", "{\"format\":3}",
    "{\"format\":4,\"schema\":1,\"savedAt\":0}\n1", "{\"checksum\":\"c32a4c14\",\"format\":3}",
    "{\"checksum\":\"C32A4C13\",\"format\":3}",
    "{\"checksum\":\"", "{\"checksum\":\"c32a",
    "{\"checksum\":\"00000000\",\"format\":3,\"savedAt\":0,\"schema\":1}\n1",
    #"{"khecksum":"9a43ff51","format":3,"savedAt":1,"schema":1,"tag":"00112233445566778899aabbccddeeff"}"# + "\n1",
  ])
  func `Bytes that contain no valid value are corrupt, and the reason is given`(text: String) {
    guard case .corrupt(let reason) = decode(text, as: Int.self) else {
      Issue.record("\(text)")
      return
    }
    #expect(!reason.isEmpty)
  }

  @Test(arguments: [
    #","format":0,"schema":1,"savedAt":0}"# + "\n1", #","format":2,"savedAt":0,"schema":1}"# + "\n1", "}",
    #","format":3}"#, #","format":3,"schema":1,"savedAt":0}"# + "\n1", #","format":3,"schema":0,"savedAt":0}"# + "\n1",
    #","format":3,"schema":1,"savedAt":0,"tag":"00112233445566778899aabbccddeeff"}"#,
    #","format":3,"schema":1,"savedAt":0,"tag":"00112233445566778899aabbccddeeff"}"# + "\n\"text\"",
  ])
  func `Bytes with the right checksum that contain no valid value are undecodable, and not corrupt`(line: String) {
    let checksum = CRC32C.checksum(of: Data(line.utf8)).hexadecimalDigits
    guard case .undecodable(let reason) = decode(#"{"checksum":"\#(checksum)""# + line, as: Int.self) else {
      Issue.record("\(line)")
      return
    }
    #expect(!reason.isEmpty)
  }

  @Test func `Bytes are corrupt if any one bit is flipped, or if they are cut off anywhere`() throws {
    let bytes = try encodedEnvelope(profile, savedAt: Date(timeIntervalSinceReferenceDate: 0))
    var corruptCopies = bytes.indices.map { Data(bytes[..<$0]) }
    for index in bytes.indices {
      for bit in 0..<8 {
        var flipped = bytes
        flipped[index] ^= 1 << bit
        corruptCopies.append(flipped)
      }
    }
    for copy in corruptCopies {
      guard case .corrupt = decode(copy, as: Profile.self) else {
        Issue.record("\(String(decoding: copy, as: UTF8.self))")
        return
      }
    }
  }

  @Test(
    arguments: [
      ("", 0), ("a", 0xC1D0_4330), ("123456789", 0xE306_9283), (String(repeating: "\u{0}", count: 32), 0x8A91_36AA),
    ] as [(String, UInt32)])
  func `The checksum is CRC-32C`(text: String, checksum: UInt32) {
    #expect(CRC32C.checksum(of: Data(text.utf8)) == checksum)
    // The slice has a start index other than 0.
    #expect(CRC32C.checksum(of: Data("xyz\(text)".utf8).dropFirst(3)) == checksum)
  }

  @Test func `Encoding a value or a time that JSON can't represent throws`() {
    #expect(throws: EncodingError.self) { try encodedEnvelope(Double.nan) }
    #expect(throws: EncodingError.self) {
      try encodedEnvelope(1, savedAt: Date(timeIntervalSinceReferenceDate: .infinity))
    }
  }
}
