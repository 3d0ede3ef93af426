# Installed copy: tutti::tutti by find_package(tutti CONFIG), and tutti.pc.
