//go:build tools

// Package tools names the HTTP/2 conformance tool that the tests run, so that go.mod keeps it.
package tools

import _ "github.com/summerwind/h2spec/cmd/h2spec"
