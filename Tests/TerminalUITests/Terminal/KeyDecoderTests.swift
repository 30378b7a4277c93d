import Testing

@testable import TerminalUI

struct KeyDecoderTests {
  private func keys(_ reads: String...) -> [Key] {
    var decoder = KeyDecoder()
    return reads.flatMap { decoder.decode($0.utf8) } + decoder.finish()
  }

  @Test func `Letters are keys, in any script`() {
    #expect(keys("jK1 é山😂") == "jK1 é山😂".map(Key.character))
  }

  @Test func `A letter may come in several reads`() {
    var decoder = KeyDecoder()
    #expect("山".utf8.map { decoder.decode([$0]) } == [[], [], [.character("山")]])
  }

  @Test func `Bytes that are not UTF-8 are swallowed`() {
    var decoder = KeyDecoder()
    #expect(decoder.decode([0xFF, 0x80, 0xC0, 0x61]) == [.character("a")])
    #expect(decoder.decode([0xE5, 0xB1, 0x62]) == [.character("b")])
    #expect(decoder.decode([0xED, 0xA0, 0x80, 0x63]) == [.character("c")])
    #expect(decoder.decode([0xE5, 0x03]) == [.control("c")])
  }

  @Test func `Control keys have their names`() {
    #expect(
      keys("\u{3}\u{1A}\u{C}\r\n\t\u{7F}\u{8}") == [
        .control("c"), .control("z"), .control("l"), .enter, .enter, .tab, .backspace, .backspace,
      ])
  }

  @Test func `Arrows come in normal and in application mode, and with modifiers`() {
    #expect(keys("\u{1B}[A\u{1B}[B\u{1B}[C\u{1B}[D") == [.up, .down, .right, .left])
    #expect(keys("\u{1B}OA\u{1B}OB\u{1B}OC\u{1B}OD\u{1B}OM") == [.up, .down, .right, .left, .enter])
    #expect(keys("\u{1B}[1;5A") == [.up])
  }

  @Test func `Tab is known with the shift key`() {
    #expect(keys("\t\u{1B}[Z\t") == [.tab, .backTab, .tab])
  }

  @Test func `A sequence is pending from Escape to its end, but not in a paste`() {
    var decoder = KeyDecoder()
    var pending: [Bool] = []
    for read in ["a", "\u{1B}", "[", "A", "\u{1B}", "j", "\u{E5}", "\u{1B}"] {
      _ = decoder.decode(read.utf8)
      pending.append(decoder.isSequencePending)
    }
    #expect(pending == [false, true, true, false, true, false, false, true])
    _ = decoder.finish()
    #expect(!decoder.isSequencePending)
    _ = decoder.decode("\u{1B}[200~a\u{1B}".utf8)
    #expect(!decoder.isSequencePending)
    #expect(decoder.decode("[201~b".utf8) == [.character("b")])
  }

  @Test func `The keys around the arrows are known by both of their names`() {
    #expect(keys("\u{1B}[H\u{1B}[F\u{1B}OH\u{1B}OF") == [.home, .end, .home, .end])
    #expect(
      keys("\u{1B}[1~\u{1B}[7~\u{1B}[4~\u{1B}[8~\u{1B}[5~\u{1B}[6;2~")
        == [.home, .home, .end, .end, .pageUp, .pageDown])
  }

  @Test func `A sequence may come in several reads`() {
    #expect(keys("\u{1B}", "[", "1;", "5", "B", "j") == [.down, .character("j")])
    #expect(keys("\u{1B}", "OA") == [.up])
  }

  @Test func `Escape alone is known by what follows, or by the end`() {
    #expect(keys("\u{1B}") == [.escape])
    #expect(keys("\u{1B}j") == [.escape, .character("j")])
    #expect(keys("\u{1B}", "\u{1B}") == [.escape, .escape])
    #expect(keys("\u{1B}", "\u{1B}[A") == [.escape, .up])
    #expect(keys("\u{1B}\u{3}") == [.escape, .control("c")])
  }

  @Test func `Unknown sequences are swallowed whole`() {
    #expect(keys("\u{1B}[3~\u{1B}[?62;c\u{1B}[I\u{1B}OPx") == [.character("x")])
    #expect(keys("\u{1B}[200$y\u{1B}[<0;1;1Mq") == [.character("q")])
    #expect(keys("\u{1B}]11;rgb:0/0/0\u{7}a\u{1B}P1$r\u{1B}\\b") == [.character("a"), .character("b")])
  }

  @Test(arguments: ["[", "[1;", "[[", "O", "P", "]", "X", "]0;title", "P1$r\u{1B}"])
  func `What begins a sequence and does not go on is no key, and takes none with it`(beginning: String) {
    var decoder = KeyDecoder()
    #expect(decoder.decode("\u{1B}\(beginning)".utf8) == [])
    #expect(decoder.isSequencePending)
    #expect(decoder.finish() == [])
    #expect(!decoder.isSequencePending)
    #expect(decoder.decode("A".utf8) == [.character("A")])
  }

  @Test func `The function keys of the console of Linux are swallowed whole`() {
    #expect(keys("\u{1B}[[A\u{1B}[[Ej") == [.character("j")])
    #expect(keys("\u{1B}[[", "Bj") == [.character("j")])
    #expect(keys("\u{1B}[[\u{3}") == [.control("c")])
  }

  @Test func `A control key gets through whatever was begun`() {
    #expect(keys("\u{1B}[12\u{3}") == [.control("c")])
    #expect(keys("\u{1B}]0;title\u{3}") == [.control("c")])
    #expect(keys("\u{1B}O\u{3}") == [.control("c")])
    #expect(keys("\u{1B}[1\u{1B}[A") == [.up])
  }

  @Test func `What is pasted is one line of text, and no key but Ctrl-C`() {
    let paste = "\u{1B}[200~"
    let end = "\u{1B}[201~"
    #expect(keys("a" + paste + "d写" + end + "d") == [.character("a"), .pasted("d写"), .character("d")])
    // A break is a space between lines, and nothing at the end.
    #expect(keys(paste + "a\r\n\tb\n" + end + paste + "c" + end) == [.pasted("a b"), .pasted("c")])
    #expect(keys(paste + "\u{1B}[A\u{1B}[31m\u{1A}\u{7F}a" + end) == [.pasted("a")])
    #expect(keys(paste, "a\u{1B}") == [.pasted("a")])
    #expect(keys(paste, "a", "\u{1B}", "[20", "1~b") == [.pasted("a"), .character("b")])
    #expect(keys(paste + "a\u{3}q") == [.pasted("a"), .control("c"), .character("q")])
    #expect(keys(paste + "ab", "c\n", "d" + end) == [.pasted("ab"), .pasted("c"), .pasted(" d")])
  }

  @Test func `A sequence without an end is given up`() {
    var decoder = KeyDecoder()
    _ = decoder.decode("\u{1B}[".utf8)
    _ = decoder.decode(Array(repeating: UInt8(ascii: "1"), count: 256))
    #expect(decoder.decode("1q".utf8) == [.character("1"), .character("q")])
  }
}
