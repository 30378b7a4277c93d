import Foundation
import Testing

@testable import SignIn

@MainActor
@Suite struct PasswordTests {
  private nonisolated static let secret = "correct-horse-battery"

  /// Returns all texts that descriptions, dumps and mirrors of a value produce.
  private func texts(of value: Any) -> [String] {
    var dumped = ""
    dump(value, to: &dumped)
    return ["\(value)", String(describing: value), String(reflecting: value), dumped] + textsOfChildren(of: value)
  }

  private func textsOfChildren(of value: Any) -> [String] {
    Mirror(reflecting: value).children.flatMap { child in
      ["\(child.value)", String(reflecting: child.value)] + textsOfChildren(of: child.value)
    }
  }

  private func expectNoLeak(_ value: Any, sourceLocation: SourceLocation = #_sourceLocation) {
    for text in texts(of: value) {
      #expect(!text.contains(Self.secret), "\(text)", sourceLocation: sourceLocation)
    }
  }

  @Test func `A password's descriptions, dump and mirror don't reveal it`() {
    let password = Password(Self.secret)
    #expect("\(password)" == "<redacted>")
    #expect(String(reflecting: password) == "<redacted>")
    #expect(Mirror(reflecting: password).children.isEmpty)
    var dumped = ""
    dump(password, to: &dumped)
    #expect(dumped == "- <redacted>\n")
    #expect(password.text == Self.secret)
  }

  @Test func `No value that contains a password reveals it`() async throws {
    let account = InMemorySignInSession.Account(uid: "0", username: "jake", password: Password(Self.secret))
    let session = InMemorySignInSession(accounts: [account])
    let service = UserService(session: session)
    let model = SignInViewModel(userService: service)
    model.username = "jake"
    model.password = Password(Self.secret)
    var form = SignInForm(state: .unsigned)
    form.password = Password(Self.secret)
    expectNoLeak(Password(Self.secret))
    expectNoLeak([Password(Self.secret)])
    expectNoLeak(Optional(Password(Self.secret)) as Any)
    expectNoLeak(["password": Password(Self.secret)])
    expectNoLeak(account)
    expectNoLeak(form)
    expectNoLeak(model)
    expectNoLeak(session)
    await model.submit()
    expectNoLeak(service)
    expectNoLeak(service.signState)
    expectNoLeak(model.message)
    let error = try await #require(throws: SignInError.self) {
      try await UserService(session: session).performSignin(username: "mei!", password: Password(Self.secret))
    }
    expectNoLeak(error)
  }

  @Test func `The check for leaks finds a leak`() {
    struct LeakyForm {
      let fields = ["password": Password(PasswordTests.secret).text]
    }
    #expect(texts(of: LeakyForm()).contains { $0.contains(Self.secret) })
  }
}
