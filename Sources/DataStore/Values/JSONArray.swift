internal import Foundation

/// The bytes of a JSON array, with the position of each element.
struct JSONArray {
  private let bytes: Data
  /// The offset of each element, followed by the offset after the closing bracket.
  ///
  /// Exactly one byte lies between an element and the next offset: the comma or the closing bracket.
  private let starts: [Int]

  /// Finds the elements of an array that has no white space between them.
  ///
  /// - Parameters:
  ///   - bytes: A valid JSON array with at least one element.
  ///   - count: The number of elements that it must have.
  /// - Returns: `nil` if the array has a different number of elements.
  /// - Complexity: O(*n*) for *n* bytes.
  init?(_ bytes: Data, count: Int) {
    var starts: [Int] = []
    starts.reserveCapacity(count + 1)
    bytes.withUnsafeBytes { bytes in
      var (depth, isInString, index) = (0, false, 0)
      while index < bytes.count {
        switch bytes[index] {
        case UInt8(ascii: "\\") where isInString: index += 1
        case UInt8(ascii: "\""): isInString.toggle()
        case _ where isInString: break
        case UInt8(ascii: "["), UInt8(ascii: "{"):
          depth += 1
          if index == 0 { starts.append(1) }
        case UInt8(ascii: "]"), UInt8(ascii: "}"):
          depth -= 1
          if depth == 0 { starts.append(index + 1) }
        case UInt8(ascii: ",") where depth == 1: starts.append(index + 1)
        default: break
        }
        index += 1
      }
    }
    guard starts.count == count + 1 else { return nil }
    (self.bytes, self.starts) = (bytes, starts)
  }

  /// Returns the bytes of a range of elements, with the commas between them.
  func elements(_ range: Range<Int>) -> Data {
    bytes.dropFirst(starts[range.lowerBound]).prefix(starts[range.upperBound] - 1 - starts[range.lowerBound])
  }

  /// Joins runs of elements into the bytes of an array.
  static func join(_ runs: [Data]) -> Data {
    var joined = Data(capacity: runs.reduce(2) { $0 + $1.count + 1 })
    joined.append(UInt8(ascii: "["))
    for run in runs {
      if joined.count > 1 { joined.append(UInt8(ascii: ",")) }
      joined.append(run)
    }
    joined.append(UInt8(ascii: "]"))
    return joined
  }
}
