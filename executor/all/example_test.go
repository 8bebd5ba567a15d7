package all_test

import (
	"fmt"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/all"
)

func ExampleNew() {
	_, err := all.New("paper", all.Config{})
	fmt.Println(sallyport.CodeOf(err))
	// Output: INVALID_ARGUMENT
}
