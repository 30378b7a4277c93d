import Foundation
import MulticastTesting
import Testing

@testable import DataStore

@Suite struct JSONArrayTests {
  private func elementTexts(of json: String, count: Int) throws -> [String] {
    // The slice has a start index other than 0.
    let bytes = Data("…\(json)".utf8).dropFirst("…".utf8.count)
    let array = try #require(JSONArray(bytes, count: count))
    return (0..<count).map { String(decoding: array.elements($0..<$0 + 1), as: UTF8.self) }
  }

  @Test func `Elements of any kind are found`() throws {
    #expect(try elementTexts(of: "[1]", count: 1) == ["1"])
    #expect(
      try elementTexts(of: #"[null,[1,[2,3]],{"a":[{}],"b":{"c":1}},"x"]"#, count: 4)
        == ["null", "[1,[2,3]]", #"{"a":[{}],"b":{"c":1}}"#, #""x""#])
    #expect(
      try elementTexts(of: #"["a,b","[","\"]","\\","\\\",","é"]"#, count: 6)
        == [#""a,b""#, #""[""#, #""\"]""#, #""\\""#, #""\\\",""#, #""é""#])
  }

  @Test func `Bytes that aren't an array of the given number of elements are rejected`() {
    #expect(JSONArray(Data("[1,2]".utf8), count: 1) == nil)
    #expect(JSONArray(Data("[1,2]".utf8), count: 3) == nil)
    #expect(JSONArray(Data("".utf8), count: 0) == nil)
    #expect(JSONArray(Data(#"["1,2]"#.utf8), count: 2) == nil)
  }

  @Test(arguments: 0..<20 as Range<UInt64>)
  func `Dividing the elements into runs and joining the runs restores the array`(seed: UInt64) throws {
    var generator = SplitMix64(seed: seed)
    let alphabet = [#"""#, #"\"#, ",", "[", "]", "{", "}", "a", "\n", "é", "\u{1F600}"]
    for _ in 0..<200 {
      let texts = (0..<Int.random(in: 1...9, using: &generator)).map { _ in
        (0..<Int.random(in: 0...6, using: &generator)).map { _ in alphabet.randomElement(using: &generator)! }.joined()
      }
      let bytes = try JSONEncoder.withSortedKeys.encode(texts)
      let array = try #require(JSONArray(bytes, count: texts.count))
      let border = Int.random(in: 0...texts.count, using: &generator)
      let runs = [0..<border, border..<texts.count].filter { !$0.isEmpty }.map(array.elements)
      #expect(JSONArray.join(runs) == bytes)
      for (index, text) in texts.enumerated() {
        #expect(array.elements(index..<index + 1) == (try JSONEncoder.withSortedKeys.encode(text)))
      }
    }
  }
}
