// The initializers of the sessions take an `APISession`, and their methods throw its errors.
@_exported public import GraphQLClient
// The streams of `MomentsRepo` have a type of `Repository`.
@_exported public import Repository
