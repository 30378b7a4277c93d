// A session is created with an `APISession`, and its methods throw `APISessionError`.
@_exported public import GraphQLClient
// The streams of `MomentsRepo` are `ObservedValues`, a type of the module `Repository`.
@_exported public import Repository
