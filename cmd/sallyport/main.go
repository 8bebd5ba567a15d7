// Command sallyport is the whole product in one binary: server, MCP server and command line.
package main

import (
	"context"
	"os"

	"github.com/sallyport-dev/sallyport/internal/cli"
)

func main() {
	os.Exit(cli.Main(context.Background(), cli.Standard()))
}
