import SignIn

/// The code of `SignIn.md`, copied unchanged so that the compiler checks it.
enum SignInExamples {
  static func firstExample(print: @escaping Print) async throws {
    let account = InMemorySignInSession.Account(uid: "0", username: "ann", password: Password("secret"))
    let service = UserService(session: InMemorySignInSession(accounts: [account]))
    _ = try await service.performSignin(username: "ann", password: Password("secret"))
    print(service.signState)
  }
}
