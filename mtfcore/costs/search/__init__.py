"""The search for the layout that costs least.

`layouts` is what one calls, `problem` what is asked, `hunt` the search from start to end. `tree` is branch and bound
over what `space` lists; `scopes`, `work` and `bounds` say what a layout costs at the least before it is planned. `walk`
plans, `times` prices, and `candidate`, `result` and `why` tell what was found. First file to read: `layouts`.
"""
