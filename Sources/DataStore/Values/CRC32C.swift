internal import Foundation

/// The checksum CRC-32C (Castagnoli), which detects every change of up to 32 adjacent bits.
enum CRC32C {
  static func checksum(of bytes: Data) -> UInt32 {
    bytes.withUnsafeBytes { bytes in
      tables.withUnsafeBufferPointer { tables in
        var checksum = ~UInt32(0)
        var index = 0
        // Processes eight bytes at a time. The table for each byte depends on how many of the eight follow it.
        while index + 8 <= bytes.count {
          let low = checksum ^ UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt32.self))
          let high = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: index + 4, as: UInt32.self))
          checksum = 0
          for offset in 0..<4 {
            checksum ^= tables[(7 - offset) * 256 + Int(low >> (8 * offset) & 0xFF)]
            checksum ^= tables[(3 - offset) * 256 + Int(high >> (8 * offset) & 0xFF)]
          }
          index += 8
        }
        while index < bytes.count {
          checksum = checksum >> 8 ^ tables[Int((checksum ^ UInt32(bytes[index])) & 0xFF)]
          index += 1
        }
        return ~checksum
      }
    }
  }

  /// Eight tables of 256 entries: table *n* has the contribution of each byte to the checksum if *n* bytes follow it.
  private static let tables: [UInt32] = {
    // 0x82F63B78 is the polynomial of CRC-32C, with the lowest power in the highest bit.
    var tables = (0..<256).map { byte in
      (0..<8).reduce(UInt32(byte)) { entry, _ in entry >> 1 ^ (entry & 1 == 0 ? 0 : 0x82F6_3B78) }
    }
    for index in 256..<8 * 256 {
      let entry = tables[index - 256]
      tables.append(entry >> 8 ^ tables[Int(entry & 0xFF)])
    }
    return tables
  }()
}
