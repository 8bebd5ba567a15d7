package all_test

import (
	"fmt"

	"github.com/sallyport-dev/sallyport/executor/all"
)

func ExampleNew() {
	_, err := all.New("paper", all.Config{})
	fmt.Println(err)
	// Output: executor.new: INVALID_ARGUMENT: there is no executor "paper"; there is bubblewrap
}
