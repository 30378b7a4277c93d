internal import Moments
internal import Repository
internal import SignIn

/// The data that a repository stores for the users who sign in.
struct MomentsUserData: UserDataType {
  let repo: MomentsRepo
  /// The time within which pending likes must be sent at a sign-out.
  let sendingTime: Duration

  func open(uid: String) async {
    await repo.credentialsChanged(userID: uid)
  }

  func erase(uid: String, discardingUnsent discardsUnsent: Bool) async throws(UserDataError) {
    do throws(SignOutError) {
      try await repo.signOut(userID: uid, unsent: discardsUnsent ? .discard : .send(within: sendingTime))
    } catch {
      throw
        switch error
      {
      case .unsent(let count): .unsent(count)
      case .store: .notErased(reason: error.description)
      case .cancelled: .cancelled
      }
    }
  }
}
