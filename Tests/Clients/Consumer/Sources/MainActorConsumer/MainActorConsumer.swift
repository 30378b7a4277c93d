/// A client whose code is isolated to the main actor by default, like that of a new Xcode project.
///
/// Only what the compiler requires to be `nonisolated` is, so this keyword shows what the isolation costs a user.
@main
struct MainActorConsumer {
  static func main() async throws {
    let timeLimit = Task {
      try await Task.sleep(for: .seconds(120))
      preconditionFailure("A result didn't arrive in time.")
    }
    defer { timeLimit.cancel() }
    await broadcast()
    try await storeNotes()
    try await changeNotes()
    try await query()
    try await showTimeline()
    await signIn()
    await addTodo()
    try await advanceClock()
    try await checkStore()
    try changeNotesOfServer()
    try await likeMomentOnServer()
  }

  /// Prints the result of a module, or ends the program if it isn't the expected one.
  static func report<Result: Equatable>(_ module: String, _ result: Result, expected: Result) {
    precondition(result == expected, "\(module): expected \(expected), found \(result)")
    print("\(module): \(result)")
  }
}
