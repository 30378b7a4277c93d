import Testing

@testable import TerminalUI

struct KeyDecoderTests {
  /// Decodes the reads one after the other, finishes the decoder, and returns all keys.
  private func keys(_ reads: String...) -> [Key] {
    var decoder = KeyDecoder()
    return reads.flatMap { decoder.decode($0.utf8) } + decoder.finish()
  }

  @Test func `Characters of any script are keys`() {
    #expect(keys("jK1 é山😂") == "jK1 é山😂".map(Key.character))
  }

  @Test func `The bytes of a character may be split across several reads`() {
    var decoder = KeyDecoder()
    #expect("山".utf8.map { decoder.decode([$0]) } == [[], [], [.character("山")]])
  }

  @Test func `Bytes that are not UTF-8 are discarded`() {
    var decoder = KeyDecoder()
    #expect(decoder.decode([0xFF, 0x80, 0xC0, 0x61]) == [.character("a")])
    #expect(decoder.decode([0xE5, 0xB1, 0x62]) == [.character("b")])
    #expect(decoder.decode([0xED, 0xA0, 0x80, 0x63]) == [.character("c")])
    #expect(decoder.decode([0xE5, 0x03]) == [.control("c")])
  }

  @Test func `Control bytes are decoded into keys`() {
    #expect(
      keys("\u{3}\u{1A}\u{C}\r\n\t\u{7F}\u{8}") == [
        .control("c"), .control("z"), .control("l"), .enter, .enter, .tab, .backspace, .backspace,
      ])
  }

  @Test func `Arrow keys are decoded in normal and application mode, and with modifiers`() {
    #expect(keys("\u{1B}[A\u{1B}[B\u{1B}[C\u{1B}[D") == [.up, .down, .right, .left])
    // The last key is Enter on the keypad.
    #expect(keys("\u{1B}OA\u{1B}OB\u{1B}OC\u{1B}OD\u{1B}OM") == [.up, .down, .right, .left, .enter])
    #expect(keys("\u{1B}[1;5A") == [.up])
  }

  @Test func `Tab with the Shift key is a key of its own`() {
    #expect(keys("\t\u{1B}[Z\t") == [.tab, .backTab, .tab])
  }

  @Test func `A sequence is pending from Escape to its end, except in a paste`() {
    var decoder = KeyDecoder()
    var pendingAfterRead: [Bool] = []
    for read in ["a", "\u{1B}", "[", "A", "\u{1B}", "j", "å", "\u{1B}"] {
      _ = decoder.decode(read.utf8)
      pendingAfterRead.append(decoder.isSequencePending)
    }
    #expect(pendingAfterRead == [false, true, true, false, true, false, false, true])
    _ = decoder.finish()
    #expect(!decoder.isSequencePending)
    _ = decoder.decode("\u{1B}[200~a\u{1B}".utf8)
    #expect(!decoder.isSequencePending)
    #expect(decoder.decode("[201~b".utf8) == [.character("b")])
  }

  @Test func `Home, End and the page keys are decoded in all their encodings`() {
    #expect(keys("\u{1B}[H\u{1B}[F\u{1B}OH\u{1B}OF") == [.home, .end, .home, .end])
    #expect(
      keys("\u{1B}[1~\u{1B}[7~\u{1B}[4~\u{1B}[8~\u{1B}[5~\u{1B}[6;2~")
        == [.home, .home, .end, .end, .pageUp, .pageDown])
  }

  @Test func `A sequence may be split across several reads`() {
    #expect(keys("\u{1B}", "[", "1;", "5", "B", "j") == [.down, .character("j")])
    #expect(keys("\u{1B}", "OA") == [.up])
  }

  @Test func `A lone Escape is recognized by the next byte, or when the decoder finishes`() {
    #expect(keys("\u{1B}") == [.escape])
    #expect(keys("\u{1B}j") == [.escape, .character("j")])
    #expect(keys("\u{1B}", "\u{1B}") == [.escape, .escape])
    #expect(keys("\u{1B}", "\u{1B}[A") == [.escape, .up])
    #expect(keys("\u{1B}\u{3}") == [.escape, .control("c")])
  }

  @Test func `Unknown sequences are discarded as a whole`() {
    #expect(keys("\u{1B}[3~\u{1B}[?62;c\u{1B}[I\u{1B}OPx") == [.character("x")])
    #expect(keys("\u{1B}[200$y\u{1B}[<0;1;1Mq") == [.character("q")])
    #expect(keys("\u{1B}]11;rgb:0/0/0\u{7}a\u{1B}P1$r\u{1B}\\b") == [.character("a"), .character("b")])
  }

  @Test(arguments: ["[", "[1;", "[[", "O", "P", "]", "X", "]0;title", "P1$r\u{1B}"])
  func `Abandoning an incomplete sequence produces no key, and doesn't affect the next key`(beginning: String) {
    var decoder = KeyDecoder()
    #expect(decoder.decode("\u{1B}\(beginning)".utf8) == [])
    #expect(decoder.isSequencePending)
    #expect(decoder.finish() == [])
    #expect(!decoder.isSequencePending)
    #expect(decoder.decode("A".utf8) == [.character("A")])
  }

  @Test func `Function keys of the Linux console are discarded as a whole`() {
    #expect(keys("\u{1B}[[A\u{1B}[[Ej") == [.character("j")])
    #expect(keys("\u{1B}[[", "Bj") == [.character("j")])
  }

  @Test func `A control key or a new sequence interrupts an incomplete sequence`() {
    #expect(keys("\u{1B}[12\u{3}") == [.control("c")])
    #expect(keys("\u{1B}]0;title\u{3}") == [.control("c")])
    #expect(keys("\u{1B}O\u{3}") == [.control("c")])
    #expect(keys("\u{1B}[[\u{3}") == [.control("c")])
    #expect(keys("\u{1B}[1\u{1B}[A") == [.up])
  }

  @Test func `A paste becomes a single line of text, and the only key within it is Ctrl-C`() {
    let pasteStart = "\u{1B}[200~"
    let pasteEnd = "\u{1B}[201~"
    #expect(keys("a" + pasteStart + "d写" + pasteEnd + "d") == [.character("a"), .pasted("d写"), .character("d")])
    // Line breaks and tabs become one space if text follows, and are dropped at the end of the paste.
    #expect(keys(pasteStart + "a\r\n\tb\n" + pasteEnd + pasteStart + "c" + pasteEnd) == [.pasted("a b"), .pasted("c")])
    #expect(keys(pasteStart + "\u{1B}[A\u{1B}[31m\u{1A}\u{7F}a" + pasteEnd) == [.pasted("a")])
    #expect(keys(pasteStart, "a\u{1B}") == [.pasted("a")])
    #expect(keys(pasteStart, "a", "\u{1B}", "[20", "1~b") == [.pasted("a"), .character("b")])
    // Ctrl-C also ends the paste.
    #expect(keys(pasteStart + "a\u{3}q") == [.pasted("a"), .control("c"), .character("q")])
    // Each read delivers its part of the line.
    #expect(keys(pasteStart + "ab", "c\n", "d" + pasteEnd) == [.pasted("ab"), .pasted("c"), .pasted(" d")])
  }

  @Test func `A sequence that is too long is abandoned`() {
    var decoder = KeyDecoder()
    _ = decoder.decode("\u{1B}[".utf8)
    // After 256 bytes, the maximum length of a sequence, the remaining bytes are decoded as keys.
    _ = decoder.decode(Array(repeating: UInt8(ascii: "1"), count: 256))
    #expect(decoder.decode("1q".utf8) == [.character("1"), .character("q")])
  }
}
