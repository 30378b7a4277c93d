internal import DataStore
internal import Multicast

/// The rules of `KeyValueStore`, as checks that can be run on any store.
///
/// The checks need no test library. With Swift Testing, each check becomes a separate test case:
///
/// ```swift
/// @Test(arguments: StoreConformance.checks)
/// func `My store keeps the rules`(check: StoreConformance.Check) async throws {
///   try await check.run(on: harness())
/// }
/// ```
///
/// If the harness can't corrupt a value, run `checks.filter { !$0.needsCorruption }`, and if the store has no
/// implementation of `erase` of its own, those without ``Check/needsErasure``.
public enum StoreConformance {
  /// A check of one rule.
  public struct Check: Sendable, CustomStringConvertible {
    /// The rule, as a sentence.
    public let rule: String

    /// Whether the check corrupts stored bytes, and therefore needs a harness with a `corrupt` closure.
    public let needsCorruption: Bool

    /// Whether the check erases values, which the default implementation of `erase` doesn't do.
    public let needsErasure: Bool

    private let body: @Sendable (StoreHarness) async throws -> Void

    init(
      _ rule: String, needsCorruption: Bool = false, needsErasure: Bool = false,
      body: @escaping @Sendable (StoreHarness) async throws -> Void
    ) {
      self.rule = rule
      self.needsCorruption = needsCorruption
      self.needsErasure = needsErasure
      self.body = body
    }

    /// The rule.
    public var description: String { rule }

    /// Runs the check on a new harness, whose medium must be empty.
    ///
    /// If the calling task is cancelled, the check stops waiting for changes, and may throw a
    /// ``StoreConformance/Failure`` although the store keeps the rule.
    ///
    /// - Throws: A ``StoreConformance/Failure`` if the rule is broken, or if the harness throws a `StoreError` or lacks
    ///   a `corrupt` closure that the check needs. Any other error of the harness is thrown unchanged.
    public func run(on harness: StoreHarness) async throws {
      do {
        try await body(harness)
      } catch let mismatch as Mismatch {
        throw Failure(rule: rule, explanation: mismatch.explanation)
      } catch let error as StoreError {
        throw Failure(rule: rule, explanation: "unexpected error: \(error)")
      }
    }
  }

  /// The failure of a store that breaks a rule.
  public struct Failure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The rule, as a sentence.
    public let rule: String

    /// How the store's behavior differs from the expected behavior.
    public let explanation: String

    /// The rule and the explanation.
    public var description: String { "Broken rule: \(rule). \(explanation)" }
  }

  /// The type of most values that the checks store.
  public struct Note: Codable, Hashable, Sendable {
    /// A text.
    public var text: String

    /// A number, which must be loaded exactly as it was saved.
    public var number: Double

    private enum CodingKeys: CodingKey {
      case text
      case number
    }

    init(_ text: String, number: Double = 0.1) {
      self.text = text
      self.number = number
    }

    /// A note whose encoding throws.
    static let unencodable = Note("This note refuses to be encoded.")

    /// Encodes the note.
    ///
    /// - Throws: `EncodingError.invalidValue` for one particular note, which the checks save to make encoding fail;
    ///   otherwise, the encoder's error.
    public func encode(to encoder: any Encoder) throws {
      if self == .unencodable {
        throw EncodingError.invalidValue(self, .init(codingPath: encoder.codingPath, debugDescription: text))
      }
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encode(text, forKey: .text)
      try container.encode(number, forKey: .number)
    }
  }

  /// The checks of all rules.
  public static let checks: [Check] =
    valueChecks + keyChecks + commitChecks + partChecks + observerChecks + collectionChecks + sharingChecks
    + schemaChecks + faultChecks + lockChecks + suspensionChecks + erasureChecks + feedChecks
}

extension StoreConformance {
  typealias Key = StoreKey<Note>
  typealias Change = StoreChange<Note>

  static let key = Key("note", id: "Jake")

  /// An error that the body of a check throws, and that ``Check/run(on:)`` turns into a ``Failure``.
  struct Mismatch: Error {
    let explanation: String
  }

  static func expect<Found: Equatable>(_ found: Found, is expected: Found, _ subject: String) throws {
    if found != expected {
      throw Mismatch(explanation: "\(subject): expected \(expected), found \(found)")
    }
  }

  static func expect<Result>(
    _ expected: StoreError, from subject: String, _ body: () async throws(StoreError) -> Result
  ) async throws {
    try await expectError("\(expected)", from: subject, where: { $0 == expected }, body)
  }

  /// Expects an error that matches a predicate.
  static func expectError<Result>(
    _ expectedDescription: String, from subject: String, where isExpected: (StoreError) -> Bool,
    _ body: () async throws(StoreError) -> Result
  ) async throws {
    let result: Result
    do throws(StoreError) {
      result = try await body()
    } catch {
      if isExpected(error) { return }
      throw Mismatch(explanation: "\(subject): expected the error \(expectedDescription), but it threw: \(error)")
    }
    throw Mismatch(explanation: "\(subject): expected the error \(expectedDescription), but it returned \(result)")
  }

  /// Reads exactly `count` elements, within the harness's time limit.
  static func read<Element>(
    _ count: Int, from subscription: MulticastSubscription<Element, Never>, on harness: StoreHarness
  ) async throws -> [Element] {
    let elements = try await withThrowingTaskGroup(of: [Element]?.self) { group in
      group.addTask {
        var elements: [Element] = []
        for await element in subscription {
          elements.append(element)
          if elements.count == count { break }
        }
        return elements
      }
      group.addTask {
        do { try await Task.sleep(for: harness.timeLimit) } catch {
          // The receiving task ended first, or the check was cancelled.
        }
        return nil
      }
      // When one task ends, the other is cancelled. If the receiving task is cancelled, it returns the elements that
      // have arrived.
      var receivedElements: [Element] = []
      for try await result in group {
        group.cancelAll()
        receivedElements = result ?? receivedElements
      }
      return receivedElements
    }
    guard elements.count == count else {
      let expected = count == 1 ? "1 element" : "\(count) elements"
      throw Mismatch(explanation: "expected \(expected) of the stream, but only these came: \(elements)")
    }
    return elements
  }
}
