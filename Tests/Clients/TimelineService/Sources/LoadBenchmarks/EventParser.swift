internal import NIOCore

/// Finds the events in the bytes of a stream.
///
/// The parser creates no strings, and searches each byte only once for the end of a line, because the program shares
/// its cores with the services that it measures.
struct EventParser {
  /// An event with an id and content.
  struct Event {
    let id: UInt64
    let content: ByteBufferView
  }

  private static let newline = UInt8(ascii: "\n")

  private var received = ByteBuffer()
  /// The number of bytes at the start of the current line that are known to contain no newline.
  private var searchedCount = 0
  private var id: UInt64?
  private var content: ByteBufferView?

  /// Adds bytes that were received.
  mutating func append(_ part: ByteBuffer) {
    if received.readableBytes == 0 {
      // Usually each part consists of whole events. Then no earlier bytes remain, and nothing is copied.
      received = part
    } else {
      received.discardReadBytes()
      received.writeImmutableBuffer(part)
    }
  }

  /// Returns the next event whose end was received, or `nil` if there is none.
  mutating func next() -> Event? {
    while let line = nextLine() {
      if line.starts(with: "id: ".utf8) {
        id = Self.hexNumber(line.dropFirst(4))
      } else if line.starts(with: "data: ".utf8) {
        content = line.dropFirst(6)
      } else if line.isEmpty {
        defer { (id, content) = (nil, nil) }
        if let id, let content { return Event(id: id, content: content) }
      }
    }
    return nil
  }

  private mutating func nextLine() -> ByteBufferView? {
    let bytes = received.readableBytesView
    guard let end = bytes.dropFirst(searchedCount).firstIndex(of: Self.newline) else {
      searchedCount = bytes.count
      // Releases the buffer in which the connection received the bytes.
      if bytes.isEmpty { received = ByteBuffer() }
      return nil
    }
    searchedCount = 0
    let line = bytes[bytes.startIndex..<end]
    received.moveReaderIndex(forwardBy: line.count + 1)
    return line
  }

  private static func hexNumber(_ digits: ByteBufferView) -> UInt64? {
    guard !digits.isEmpty else { return nil }
    var number: UInt64 = 0
    for digit in digits {
      let value: UInt8
      switch digit {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): value = digit - UInt8(ascii: "0")
      case UInt8(ascii: "a")...UInt8(ascii: "f"): value = digit - UInt8(ascii: "a") + 10
      default: return nil
      }
      // Fails if this digit would overflow the number.
      guard number >> 60 == 0 else { return nil }
      number = number << 4 | UInt64(value)
    }
    return number
  }
}
