/// The hash SHA-256, for which no two texts with the same result are known.
///
/// It is written here because the systems other than Apple's have no hash function that every program can rely on.
enum SHA256 {
  /// Returns the hash as 64 lower-case hexadecimal digits.
  ///
  /// - Complexity: O(*n*) for *n* bytes.
  static func digest(of bytes: some Collection<UInt8>) -> String {
    var message = Array(bytes)
    let bitCount = UInt64(message.count) * 8
    // The padding is a single 1 bit, zeros up to the last eight bytes of a block, and the number of bits.
    message.append(0x80)
    while message.count % 64 != 56 { message.append(0) }
    for shift in stride(from: 56, through: 0, by: -8) { message.append(UInt8(truncatingIfNeeded: bitCount >> shift)) }
    var hash = initialHash
    for start in stride(from: 0, to: message.count, by: 64) { hash.process(message[start..<start + 64]) }
    return (0..<8).map { hash[$0].hexadecimalDigits }.joined()
  }

  /// The first 32 bits of the fractional parts of the square roots of the first 8 primes.
  private static let initialHash = SIMD8<UInt32>(
    0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19)

  /// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
  fileprivate static let roundConstants: [UInt32] = [
    0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
    0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
    0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
    0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
    0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
    0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
    0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
    0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
  ]
}

extension SIMD8<UInt32> {
  /// Adds a block of 64 bytes to the hash.
  fileprivate mutating func process(_ block: ArraySlice<UInt8>) {
    var schedule: [UInt32] = []
    schedule.reserveCapacity(64)
    for start in stride(from: block.startIndex, to: block.endIndex, by: 4) {
      schedule.append(block[start..<start + 4].reduce(0) { $0 << 8 | UInt32($1) })
    }
    for index in 16..<64 {
      let (early, late) = (schedule[index - 15], schedule[index - 2])
      let first = early.rotated(by: 7) ^ early.rotated(by: 18) ^ (early >> 3)
      let second = late.rotated(by: 17) ^ late.rotated(by: 19) ^ (late >> 10)
      schedule.append(schedule[index - 16] &+ first &+ schedule[index - 7] &+ second)
    }
    var work = self
    for (constant, word) in zip(SHA256.roundConstants, schedule) {
      let (a, b, c, e) = (work[0], work[1], work[2], work[4])
      let mixed = e.rotated(by: 6) ^ e.rotated(by: 11) ^ e.rotated(by: 25)
      let choice = e & work[5] ^ ~e & work[6]
      let first = work[7] &+ mixed &+ choice &+ constant &+ word
      let majority = a & b ^ a & c ^ b & c
      let second = (a.rotated(by: 2) ^ a.rotated(by: 13) ^ a.rotated(by: 22)) &+ majority
      work = SIMD8(first &+ second, a, b, c, work[3] &+ first, e, work[5], work[6])
    }
    self &+= work
  }
}

extension UInt32 {
  fileprivate func rotated(by count: UInt32) -> UInt32 { self >> count | self << (32 - count) }
}
