// swift-format-ignore-file

// On Darwin, Foundation exports these.
@_exported import Darwin
@_exported import DarwinDispatch

// Exports only parts of Linux's Foundation, because the whole module exports Glibc.
@_exported import FoundationEssentials
@_exported import FoundationInternationalization
@_exported import class Foundation.Bundle
@_exported import class Foundation.FileHandle
@_exported import class Foundation.JSONSerialization
@_exported import class Foundation.NSLock
@_exported import class Foundation.NSObject
@_exported import class Foundation.NotificationCenter
@_exported import class Foundation.Operation
@_exported import class Foundation.OperationQueue
@_exported import class Foundation.Pipe
@_exported import class Foundation.Process
@_exported import class Foundation.Thread
@_exported import class Foundation.UserDefaults
@_exported import enum Foundation.POSIXErrorCode
@_exported import let Foundation.NSLocalizedDescriptionKey
@_exported import let Foundation.NSURLErrorKey
@_exported import let Foundation.NSUnderlyingErrorKey
@_exported import protocol Foundation.LocalizedError
@_exported import protocol Foundation.NSObjectProtocol
@_exported import struct Foundation.CharacterSet
@_exported import struct Foundation.Notification
@_exported import struct Foundation.ObjCBool
@_exported import struct Foundation.POSIXError
@_exported import struct Foundation.URLError

// On Darwin, these are part of Foundation.
@_exported import class FoundationNetworking.HTTPURLResponse
@_exported import class FoundationNetworking.URLAuthenticationChallenge
@_exported import class FoundationNetworking.URLCredential
@_exported import class FoundationNetworking.URLResponse
@_exported import class FoundationNetworking.URLSession
@_exported import class FoundationNetworking.URLSessionConfiguration
@_exported import class FoundationNetworking.URLSessionDataTask
@_exported import class FoundationNetworking.URLSessionTask
@_exported import let FoundationNetworking.NSURLAuthenticationMethodDefault
@_exported import let FoundationNetworking.NSURLAuthenticationMethodHTTPBasic
@_exported import let FoundationNetworking.NSURLAuthenticationMethodHTTPDigest
@_exported import let FoundationNetworking.NSURLAuthenticationMethodNTLM
@_exported import let FoundationNetworking.NSURLAuthenticationMethodNegotiate
@_exported import protocol FoundationNetworking.URLSessionDataDelegate
@_exported import struct FoundationNetworking.URLRequest
