/// The JSON body of a GraphQL request over HTTP POST.
struct GraphQLRequest<Variables: Encodable & Sendable>: Encodable, Sendable {
  let query: String
  let operationName: String
  let variables: Variables

  init(document: String, operationName: String, variables: Variables) {
    self.query = document
    self.operationName = operationName
    self.variables = variables
  }
}
