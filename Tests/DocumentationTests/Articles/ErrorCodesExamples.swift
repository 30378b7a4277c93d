import GraphQLClient
import Repository

/// The code of `ErrorCodes.md`, copied unchanged so that the compiler checks it.
enum ErrorCodesExamples {
  static func applyTable(to error: APISessionError, print: Print) {
    switch error.meaning(by: .standard) {
    case .needsSignIn: print("Sign in again.")
    case .retryLater: print("Try again in \(error.retryAfter ?? .seconds(1)).")
    case .unknownOutcome: print("It is unknown whether the server made the change.")
    case .refused, nil: print("\(error)")
    }
  }

  static func changeTable() -> GraphQLErrorCodes {
    var codes = GraphQLErrorCodes.standard
    codes["SESSION_EXPIRED"] = .needsSignIn
    codes["UNAUTHORIZED"] = .refused
    return codes
  }

  static func leaveUncodedErrorsOpen(_ codes: inout GraphQLErrorCodes) {
    codes.uncodedFieldErrors = .unknownOutcome
  }

  static func reply(to error: APISessionError) throws(APISessionError) -> MutationReply<String> {
    if error.hasError(below: "updateMomentLike") { return .withoutValue }
    throw error
  }
}
