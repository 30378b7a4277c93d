// A program that makes the sessions of this module makes an `APISession` for them, and handles its errors.
@_exported public import GraphQLClient
// `MomentsRepo` can't be observed without it.
@_exported public import Repository
