// The initializers of the sessions take an `APISession`, and their methods throw its errors.
@_exported public import GraphQLClient
// The streams of `MomentsRepo` are `ObservedValues`, a type of the module `Repository`.
@_exported public import Repository
