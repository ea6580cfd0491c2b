//go:build !man

package main

import "github.com/spf13/cobra"

// generators are none in the program that users get; see man.go.
var generators []func(*app) *cobra.Command
