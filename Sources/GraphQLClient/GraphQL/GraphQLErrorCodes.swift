/// A table of the names that servers give to errors, and of what each name means for the request.
///
/// The GraphQL specification defines no names, and many servers report every failure with the HTTP status 200. The name
/// is then the only machine-readable information about a failure. ``standard`` has the names of common servers. If your
/// server uses others, change a copy of it; see the article *Error codes*.
///
/// Names are compared exactly. For example, `UNAUTHORIZED` of Spring for GraphQL asks for a sign-in, and `Unauthorized`
/// of AWS AppSync denies a field to a user who is signed in.
public struct GraphQLErrorCodes: Hashable, Sendable {
  /// What an error means for the request that caused it.
  ///
  /// The cases are ordered by caution: a smaller case rules out less. An unknown outcome rules out nothing, a need for
  /// a sign-in and a later attempt rule out that the request had an effect, and a refusal also rules out that the
  /// request can ever succeed.
  public enum Meaning: Int, Comparable, CaseIterable, Sendable {
    /// It isn't known whether the request had an effect.
    case unknownOutcome
    /// The request had no effect, and may succeed after the user has signed in again.
    case needsSignIn
    /// The request had no effect, and may succeed later.
    ///
    /// If the response has the field `Retry-After`, its wait applies.
    case retryLater
    /// The request had no effect, and will never succeed unchanged.
    case refused

    /// Returns whether `lhs` rules out less than `rhs`.
    public static func < (lhs: Meaning, rhs: Meaning) -> Bool { lhs.rawValue < rhs.rawValue }
  }

  private var meanings: [String: Meaning]

  /// The meaning of an error of a field that has no code in the table, if the HTTP status has no meaning either; a
  /// refusal by default.
  ///
  /// Some servers, such as Ariadne, Strawberry and Graphene, give no code to the exception of a resolver, which may have
  /// made a part of the change. If such a server has codes for all its refusals, set ``Meaning/unknownOutcome``, so that
  /// other errors aren't taken for refusals. An error without a path is a refusal in any case, because it isn't an error
  /// of a field: the server reported it before the execution.
  ///
  /// Used by ``APISessionError/meaning(by:)``.
  public var uncodedFieldErrors = Meaning.refused

  /// Creates a table.
  public init(_ meanings: [String: Meaning] = [:]) {
    self.meanings = meanings
  }

  /// The meaning of a name; `nil` if the table doesn't have it.
  public subscript(code: String) -> Meaning? {
    get { meanings[code] }
    set { meanings[code] = newValue }
  }

  /// Returns the meaning of the errors of one response.
  ///
  /// Each error has the meaning of its ``GraphQLError/code``, or `fallback` if it has no code or the table doesn't have
  /// the code. If the errors have different meanings, the most cautious one counts, because it is the only one that is
  /// true for all of them.
  ///
  /// - Parameters:
  ///   - errors: The errors; at least one.
  ///   - fallback: The meaning of an error without a known code. Usually the HTTP status determines it.
  /// - Complexity: O(*n*) on average, where *n* is the number of errors.
  public func meaning(of errors: [GraphQLError], otherwise fallback: Meaning = .refused) -> Meaning {
    errors.map { $0.code.flatMap { self[$0] } ?? fallback }.min() ?? fallback
  }
}

extension GraphQLErrorCodes: ExpressibleByDictionaryLiteral {
  /// Creates a table from a dictionary literal.
  ///
  /// If a name occurs twice, the more cautious meaning counts.
  public init(dictionaryLiteral elements: (String, Meaning)...) {
    self.init(Dictionary(elements, uniquingKeysWith: min))
  }
}

extension GraphQLErrorCodes {
  /// The names of common servers; the article *Error codes* has the whole table, with its sources.
  ///
  /// A name that several servers use with different meanings has the most cautious of them.
  public static let standard = GraphQLErrorCodes(
    Dictionary(
      standardNames.flatMap { meaning, names in names.map { ($0, meaning) } }, uniquingKeysWith: min))

  /// The names in ``standard``, by their meanings.
  static let standardNames: [Meaning: [String]] = [
    .needsSignIn: [
      // Apollo Server up to 3, Apollo Router, GraphQL Yoga, Netflix DGS
      "UNAUTHENTICATED", "AUTH_ERROR",
      // Spring for GraphQL, the permission classes in Strawberry's documentation, and many servers of their own
      "UNAUTHORIZED", "NOT_AUTHENTICATED", "TOKEN_EXPIRED", "INVALID_TOKEN",
      // Hot Chocolate
      "AUTH_NOT_AUTHENTICATED",
      // AWS AppSync
      "UnauthorizedException", "ExpiredTokenException",
      // Hasura, which answers 401 with `access-denied` for a missing or wrong secret
      "invalid-jwt", "jwt-invalid-claims", "jwt-missing-role-claims", "access-denied",
    ],
    .retryLater: [
      // Shopify, GitHub, Apollo Router
      "THROTTLED", "RATE_LIMITED", "REQUEST_RATE_LIMITED",
      // Names of rate limiters, gateways and gRPC
      "RATE_LIMIT_EXCEEDED", "TOO_MANY_REQUESTS", "SERVICE_UNAVAILABLE", "UNAVAILABLE", "ENHANCE_YOUR_CALM",
      // AWS AppSync and its data sources
      "TooManyRequestsException", "ThrottlingException", "LimitExceededException", "ServiceUnavailableException",
      "DynamoDB:ProvisionedThroughputExceededException", "Lambda:TooManyRequestsException",
      // Hasura
      "busy", "postgres-max-connections-error", "rate-limit-exceeded",
    ],
    .unknownOutcome: [
      // Apollo Server, for every error that a resolver throws without a code of its own
      "INTERNAL_SERVER_ERROR",
      // Apollo Router, and Apollo Federation
      "GATEWAY_TIMEOUT", "REQUEST_TIMEOUT", "SUBREQUEST_HTTP_ERROR", "DOWNSTREAM_SERVICE_ERROR",
      // Spring for GraphQL, graphql-java, Netflix DGS
      "INTERNAL_ERROR", "INTERNAL", "DataFetchingException", "DEADLINE_EXCEEDED", "TIMEOUT",
      // Hot Chocolate, for a request that took too long or was cancelled
      "HC0045", "HC0049",
      // AWS AppSync and its data sources
      "InternalFailure", "InternalFailureException", "ExecutionTimeout", "Lambda:ExecutionTimeoutException",
      "Lambda:Unhandled",
      // Hasura
      "unexpected", "postgres-error", "mssql-error", "bigquery-error", "remote-schema-error",
    ],
    .refused: [
      // Apollo Server
      "GRAPHQL_PARSE_FAILED", "GRAPHQL_VALIDATION_FAILED", "BAD_USER_INPUT", "BAD_REQUEST",
      "OPERATION_RESOLUTION_FAILURE", "PERSISTED_QUERY_NOT_FOUND", "PERSISTED_QUERY_NOT_SUPPORTED", "FORBIDDEN",
      // Spring for GraphQL, graphql-java, Netflix DGS
      "NOT_FOUND", "PERMISSION_DENIED", "FAILED_PRECONDITION", "ValidationError", "InvalidSyntax",
      // Hot Chocolate, Apollo Router
      "AUTH_NOT_AUTHORIZED", "UNAUTHORIZED_FIELD_OR_TYPE",
      // AWS AppSync
      "Unauthorized", "BadRequestException", "MalformedHttpRequestException", "NotFoundException",
      // Hasura
      "bad-request", "validation-failed", "parse-failed", "permission-denied", "permission-error",
      "constraint-violation", "constraint-error", "data-exception", "not-exists", "not-found", "not-supported",
      "already-exists",
    ],
  ]
}
