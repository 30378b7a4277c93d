import MulticastTesting

/// The code of `MulticastTesting.md`, copied unchanged so that the compiler checks it.
enum MulticastTestingExamples {
  static func firstExample(print: @escaping Print) async throws {
    let clock = ManualClock()
    let tea = Task {
      try await clock.sleep(for: .seconds(180))
      print("The tea is ready.")
    }
    await clock.sleepers()
    clock.advance(by: .seconds(180))
    try await tea.value
  }
}
