import MulticastTesting
import Repository
import Testing

@Suite struct RetryPolicyTests {
  @Test func `The longest delay doubles up to the cap`() {
    let policy = RetryPolicy(base: .milliseconds(500), multiplier: 2, cap: .seconds(10))
    #expect(
      (1...8).map { policy.ceiling(forAttempt: $0) } == [
        .milliseconds(500), .seconds(1), .seconds(2), .seconds(4), .seconds(8), .seconds(10), .seconds(10),
        .seconds(10),
      ])
  }

  @Test func `The multiplier needn't be a whole number`() {
    let policy = RetryPolicy(base: .nanoseconds(1000), multiplier: 1.5, cap: .seconds(1))
    #expect(
      (1...5).map { policy.ceiling(forAttempt: $0) } == [
        .nanoseconds(1000), .nanoseconds(1500), .nanoseconds(2250), .nanoseconds(3375), .nanoseconds(5063),
      ])
  }

  @Test(arguments: [1, 2, 64, 1024, 10_000, .max])
  func `Every attempt number has a ceiling`(attempt: Int) {
    #expect(RetryPolicy(base: .seconds(1), multiplier: 1, cap: .seconds(9)).ceiling(forAttempt: attempt) == .seconds(1))
    #expect(RetryPolicy(base: .zero, multiplier: 2, cap: .seconds(9)).ceiling(forAttempt: attempt) == .zero)
    #expect(RetryPolicy(base: .seconds(9), multiplier: 2, cap: .seconds(1)).ceiling(forAttempt: attempt) == .seconds(1))
    // A ceiling is at most `Int64.max` nanoseconds.
    let hugePolicy = RetryPolicy(base: .seconds(1), multiplier: 1e300, cap: .seconds(Int64.max))
    #expect(hugePolicy.ceiling(forAttempt: attempt) == (attempt == 1 ? .seconds(1) : .nanoseconds(Int64.max)))
  }

  @Test func `Attempt numbers below 1 count as 1`() {
    let policy = RetryPolicy(base: .seconds(1))
    #expect(policy.ceiling(forAttempt: 0) == .seconds(1))
    #expect(policy.ceiling(forAttempt: .min) == .seconds(1))
  }

  @Test func `The same random numbers give the same delays`() {
    let policy = RetryPolicy(base: .seconds(1), multiplier: 2, cap: .seconds(60))
    var generator = SplitMix64(seed: 7)
    var equalGenerator = SplitMix64(seed: 7)
    let delays = (1...5).map { policy.delay(forAttempt: $0, using: &generator) }
    #expect(delays == (1...5).map { policy.delay(forAttempt: $0, using: &equalGenerator) })
    #expect(Set(delays).count == 5)
  }

  @Test func `A delay lies between zero and the ceiling`() {
    struct ConstantGenerator: RandomNumberGenerator {
      let number: UInt64
      func next() -> UInt64 { number }
    }
    let policy = RetryPolicy(base: .seconds(1), multiplier: 2, cap: .seconds(60))
    // The standard library rejects the number 0 for this range, and would request another number forever.
    var lowest = ConstantGenerator(number: 1)
    var highest = ConstantGenerator(number: .max)
    #expect(policy.delay(forAttempt: 3, using: &lowest) == .zero)
    #expect(policy.delay(forAttempt: 3, using: &highest) == .seconds(4))
    #expect(policy.delay(forAttempt: 10_000, using: &highest) == .seconds(60))
  }

  @Test func `Delays stay within their bounds and are uniformly distributed`() {
    var generator = SplitMix64(seed: 1)
    for _ in 0..<200 {
      let policy = RetryPolicy(
        base: .nanoseconds(Int64.random(in: 0...5_000_000_000, using: &generator)),
        multiplier: Double.random(in: 1...4, using: &generator),
        cap: .nanoseconds(Int64.random(in: 0...100_000_000_000, using: &generator)))
      for attempt in 1...20 {
        let ceiling = policy.ceiling(forAttempt: attempt)
        #expect(ceiling <= policy.cap)
        #expect(ceiling <= policy.ceiling(forAttempt: attempt + 1))
        #expect(Duration.zero...ceiling ~= policy.delay(forAttempt: attempt, using: &generator))
      }
    }
    let policy = RetryPolicy(base: .nanoseconds(9), multiplier: 1, cap: .seconds(1))
    var counts = [Duration: Int]()
    for _ in 0..<10_000 { counts[policy.delay(forAttempt: 1, using: &generator), default: 0] += 1 }
    // Each of the ten delays from 0 to 9 nanoseconds is expected about 1000 times.
    #expect(counts.count == 10)
    #expect(counts.values.allSatisfy { 800...1200 ~= $0 })
  }

  @Test func `The maximum number of attempts includes the first`() {
    let policy = RetryPolicy(maximumAttempts: 3)
    #expect((1...4).map { policy.allows(attempt: $0) } == [true, true, true, false])
    #expect(RetryPolicy().allows(attempt: .max))
  }
}
